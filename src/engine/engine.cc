#include "engine/engine.h"

#include <algorithm>
#include <chrono>

#include "base/checked.h"
#include "base/cpu_order.h"
#include "base/log.h"
#include "base/memory_limit.h"
#include "base/seconds.h"
#include "base/str_cat.h"
#include "model/arch/arch.h"

namespace stoker::engine {
namespace {

constexpr int64_t kPage = kernels::kTilePositions;
constexpr uint64_t kMargin = 256u << 20;
constexpr int64_t kShortContext = 2048;  ///< Rather than less, experts are streamed.
constexpr std::string_view kExpertCache = "expert cache";
/// Slots of units, where there is room: two are read while one is at work.
constexpr int64_t kRingSlots = 3;

const model::Residency& streamed() {
  static const model::Residency kStreamed{.stream_experts = true, .read_embedding = true};
  return kStreamed;
}

int64_t pages_for(int64_t positions) { return (positions + kPage - 1) / kPage; }

Result<std::unique_ptr<Pool>> make_pool(const EngineOptions& options) {
  const int usable = usable_cpus();
  int threads = options.threads == 0 ? usable : options.threads;
  if (threads > usable && !options.threads_exact) {
    log_warn(threads, " threads asked for, ", usable, " processors usable: running ", usable,
             " (--threads-exact lifts this)");
    threads = usable;
  }
  std::vector<MemoryNode> nodes = options.numa ? memory_nodes(process_cpus()) : std::vector<MemoryNode>();
  return Pool::create({.n_threads = threads, .pin = options.pin, .nodes = std::move(nodes)});
}

/// The error of something inside a file, with the file's name.
Error inside(const std::string& path, const Error& error) { return {error.code, str_cat(path, ": ", error.message)}; }

}  // namespace

uint64_t total(const std::vector<Ledger::Line>& lines) {
  uint64_t sum = 0;
  for (const Ledger::Line& line : lines) sum += line.bytes;
  return sum;
}

uint64_t default_memory_limit() {
  const MemoryLimit limit = memory_limit();
  const uint64_t most = limit.bytes / 10 * 9;
  return most > kMargin ? most - kMargin : 0;
}

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
  STOKER_TRY(gguf::File file, gguf::File::open(options.path));
  return open(std::move(options), std::move(file));
}

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options, gguf::File file) {
  auto engine = std::unique_ptr<Engine>(new Engine);
  Engine& e = *engine;
  e.options_ = std::move(options);
  if (e.options_.batch < 1 || e.options_.batch > 65536) {
    return Error{ErrorCode::kInvalidArgument, str_cat("batch is ", e.options_.batch, ", wanted 1 to 65536")};
  }
  if (e.options_.context < 0 || e.options_.context > kMostContext) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("context is ", e.options_.context, ", wanted up to ", kMostContext)};
  }
  e.ledger_ = std::make_unique<Ledger>(e.options_.memory_bytes ? e.options_.memory_bytes : default_memory_limit());
  e.hold("process", Ledger::kProcessBytes);
  STOKER_TRY(e.pool_, make_pool(e.options_));
  e.file_ = std::make_unique<gguf::File>(std::move(file));
  e.hold("vocabulary", e.file_->header_bytes() + text::Tokenizer::memory_bytes(*e.file_));
  if (e.file_->tensors().empty() && e.file_->find("tokenizer.ggml.model")) {
    return inside(e.options_.path,
                  {ErrorCode::kUnsupported, "holds a vocabulary and no weights; `stoker tokenize` works with it"});
  }
  auto model = model::Model::prepare(
      *e.file_, {.overrides = e.options_.overrides, .context = e.options_.context, .kv_type = e.options_.kv_type});
  if (!model) return inside(e.options_.path, model.error());
  e.model_ = std::move(*model);
  auto tokenizer = text::Tokenizer::from_gguf(*e.file_);
  if (tokenizer) {
    e.tokenizer_ = std::move(*tokenizer);
  } else {
    e.tokenizer_error_ = tokenizer.error().message;
  }
  return engine;
}

void Engine::hold(const std::string& name, uint64_t bytes) {
  if (auto charge = ledger_->charge(name, bytes)) {
    held_.push_back(std::move(*charge));
  } else {
    not_held_.push_back({name, bytes, 0});
  }
}

model::Runner::Options Engine::runner_options(const Needs& needs, const Placement& placement) const {
  return {.max_rows = placement.max_rows,
          .chunk_rows = std::min(placement.max_rows, std::max<int64_t>(1, needs.max_rows)),
          .max_logits = needs.max_logits,
          .lookahead = options_.expert_lookahead,
          .keep_routes = options_.keep_routes};
}

std::vector<Ledger::Line> Engine::memory(const Needs& needs, const Placement& placement) const {
  std::vector<Ledger::Line> lines = model_->load_memory(pool_->size(), placement.residency, placement.expert_budget);
  const auto kv = static_cast<uint64_t>(model_->plan().kv.page_bytes * pages_for(needs.positions));
  lines.push_back({"kv cache", kv, 0});
  if (const int64_t each = model_->plan().kv.state_bytes; each > 0) {
    lines.push_back({"recurrent states", static_cast<uint64_t>(each * needs.n_states()), 0});
  }
  for (auto& line : model::Runner::memory(model_->plan(), runner_options(needs, placement), pool_->size()))
    lines.push_back(std::move(line));
  for (Ledger::Line& line : lines) line.bytes = Buffer::charged(line.bytes);
  lines.insert(lines.end(), not_held_.begin(), not_held_.end());
  return lines;
}

/// What the limit leaves for a cache of experts besides all else.
uint64_t Engine::room_for_experts(const Needs& needs, int64_t max_rows) const {
  uint64_t others = 0;
  for (const Ledger::Line& line : memory(needs, {.residency = streamed(), .max_rows = max_rows})) {
    if (line.name != kExpertCache) others += line.bytes;
  }
  const uint64_t available = ledger_->available();
  return Buffer::most_within(available > others ? available - others : 0);
}

bool Engine::fits(const Needs& needs, const Placement& placement) const {
  return total(memory(needs, placement)) <= ledger_->available();
}

Placement Engine::placement(const Needs& needs) const {
  for (const Placement& stage : stages(needs)) {
    // The last one may not fit either; then it says what the least is.
    if (stage.residency.streams_units()) return without_units(needs);
    if (stage.residency.stream_experts) {
      if (Placement p = without_experts(needs); fits(needs, p)) return p;
    } else if (fits(needs, stage)) {
      return stage;
    }
  }
  return smallest(needs);
}

/// From all in memory to as little as can be; each takes less than the one before. A prompt's rows are as few as they
/// may be, a cache of experts as small, unless it was given.
std::vector<Placement> Engine::stages(const Needs& needs) const {
  std::vector<Placement> all;
  const auto add = [&](Placement stage) {
    stage.max_rows = resident(needs).max_rows;
    const bool more = all.empty() || total(memory(needs, stage)) < total(memory(needs, all.back()));
    if (more) all.push_back(std::move(stage));
  };
  const bool experts = has_experts();
  if (!experts || !options_.expert_cache_bytes) add({});
  Placement least{.residency = {.stream_experts = experts, .read_embedding = true},
                  .expert_budget = experts ? options_.expert_cache_bytes.value_or(0) : 0};
  add(least);
  least.residency.units.assign(model_->units().size(), true);
  add(least);
  return all;
}

Placement Engine::without_experts(const Needs& needs) const {
  const int64_t fewest_rows = resident(needs).max_rows;
  Placement p{.residency = streamed(), .max_rows = std::max(fewest_rows, needs.prompt_rows)};
  const auto budget = [&](int64_t rows) {
    return options_.expert_cache_bytes ? *options_.expert_cache_bytes
                                       : std::min(room_for_experts(needs, rows), model_->expert_index().bytes());
  };
  // A prompt read at once reads each expert once, but its rows take from the cache: at most half of it.
  const uint64_t most = budget(fewest_rows);
  const auto too_much = [&](int64_t rows) {
    return options_.expert_cache_bytes ? !fits(needs, {streamed(), *options_.expert_cache_bytes, rows})
                                       : budget(rows) < most / 2;
  };
  while (p.max_rows > fewest_rows && too_much(p.max_rows)) p.max_rows = std::max(fewest_rows, p.max_rows / 2);
  p.expert_budget = budget(p.max_rows);
  return p;
}

/// As few units on disk as can be.
Placement Engine::without_units(const Needs& needs) const {
  Placement least = smallest(needs), p = least;
  const uint64_t available = ledger_->available();
  const auto room = [&](int64_t rows) {
    p.max_rows = rows;
    const uint64_t used = total(memory(needs, p));
    return available > used ? available - used : 0;
  };
  // As for experts, rows take at most half of what else would hold weights.
  const uint64_t most = room(least.max_rows);
  int64_t rows = std::max(least.max_rows, needs.prompt_rows);
  while (rows > least.max_rows && room(rows) <= most / 2) rows = std::max(least.max_rows, rows / 2);
  p.max_rows = rows;
  for (const int64_t slots : {kRingSlots, model::Residency::kFewestRingSlots}) {
    p.residency.ring_slots = slots;
    const auto fits_with = [&](size_t n) {
      p.residency.units = units_to_stream(n);
      return fits(needs, p);
    };
    // The more of them, the less memory.
    size_t begin = 1, end = model_->units().size() + 1;
    while (begin < end) {
      const size_t n = begin + (end - begin) / 2;
      fits_with(n) ? end = n : begin = n + 1;
    }
    if (begin <= model_->units().size() && fits_with(begin)) return p;
  }
  return least;
}

/// Of these many, feed-forwards before attentions, which are smaller, and the output matrix last: a call may need it
/// more than once. All over the layers, so that the disk is at work while those in memory are. Which ones stay in
/// memory never changes: units come in a circle, where a cache that kept the most recent ones would never find one
/// again.
std::vector<bool> Engine::units_to_stream(size_t n) const {
  const std::vector<model::Unit>& units = model_->units();
  std::vector<bool> chosen(units.size(), false);
  using Kind = model::Unit::Kind;
  for (const auto kind : {Kind::kFeedForward, Kind::kAttention, Kind::kOutput}) {
    const auto same = [&](const model::Unit& unit) { return unit.kind == kind; };
    const auto n_kind = static_cast<size_t>(std::count_if(units.begin(), units.end(), same));
    const size_t n_here = std::min(n, n_kind);
    for (size_t i = 0, at = 0; i < units.size(); ++i) {
      if (!same(units[i])) continue;
      chosen[i] = (at + 1) * n_here / n_kind != at * n_here / n_kind;
      ++at;
    }
    n -= n_here;
  }
  return chosen;
}

/// What takes the least memory: nothing can be had below it.
Placement Engine::smallest(const Needs& needs) const { return stages(needs).back(); }

/// Pages for each sequence in `share` of the memory that is left besides them.
int64_t Engine::pages_that_fit(const Needs& needs, const Placement& placement, int64_t n_sequences, int share) const {
  Needs part = needs;
  part.positions = 0;
  const uint64_t fixed = total(memory(part, placement)), available = ledger_->available();
  const uint64_t room = Buffer::most_within(available > fixed ? (available - fixed) / static_cast<uint64_t>(share) : 0);
  return static_cast<int64_t>(room / static_cast<uint64_t>(model_->plan().kv.page_bytes * n_sequences));
}

Result<int64_t> Engine::context(const Needs& needs, int64_t n_sequences) const {
  if (options_.context > 0) return options_.context;
  const int64_t most = std::min(model_->config().context_length, kDefaultContext);
  const int64_t least = std::min(needs.positions, most), wanted = std::max(least, std::min(most, kShortContext));
  int64_t pages = 0;
  for (const Placement& stage : stages(needs)) {
    pages = pages_that_fit(needs, stage, n_sequences, 1);
    if (!stage.residency.streams()) {
      if (pages >= pages_for(wanted)) break;
      continue;
    }
    // Half is for weights, unless their share was given, or the text itself needs more.
    const bool given = options_.expert_cache_bytes && !stage.residency.streams_units();
    pages = given ? pages : std::max(pages_that_fit(needs, stage, n_sequences, 2), std::min(pages_for(least), pages));
    if (pages >= std::max<int64_t>(1, pages_for(least))) break;
  }
  if (pages < std::max<int64_t>(1, pages_for(least))) {
    Needs part = needs;
    part.positions = std::max(kPage, least) * n_sequences;
    return refusal(part);
  }
  return std::min(most, pages * kPage);
}

Error Engine::refusal(const Needs& needs) const {
  return {ErrorCode::kOutOfMemory, ledger_->refusal(memory(needs, smallest(needs)))};
}

Status Engine::check_logits() const {
  if (model_->config().causal) return Ok{};
  return Error{ErrorCode::kUnsupported,
               str_cat(options_.path, ": ", model_->config().arch->name,
                       " gives vectors of texts and continues none; `stoker embed` prints them")};
}

Status Engine::fits(const Needs& needs) const {
  if (fits(needs, placement(needs))) return Ok{};
  return refusal(needs);
}

uint64_t Engine::smallest_limit(const Needs& needs) const {
  return round_up<uint64_t>(ledger_->used() + total(memory(needs, smallest(needs))), 1u << 20);
}

void Engine::set_limit(uint64_t memory_bytes) {
  std::vector<Ledger::Line> lines = ledger_->lines();
  lines.insert(lines.end(), not_held_.begin(), not_held_.end());
  held_.clear();
  not_held_.clear();
  ledger_ = std::make_unique<Ledger>(memory_bytes);
  for (const Ledger::Line& line : lines) hold(line.name, line.bytes);
}

Status Engine::load(const Needs& needs, const std::function<void(uint64_t)>& on_bytes) {
  const auto start = std::chrono::steady_clock::now();
  placement_ = placement(needs);
  const uint64_t wanted = total(memory(needs, placement_));
  if (wanted > ledger_->available()) return refusal(needs);
  // Where the limit has room for the file, it stays in the page cache, and the next start is fast.
  auto cache = BulkReader::Cache::kSpare;
  const uint64_t file_bytes = model_->file_bytes(placement_.residency);
  if (!placement_.residency.streams() && file_bytes <= ledger_->available() - wanted) {
    hold("page cache", file_bytes);
    cache = BulkReader::Cache::kFill;
  }
  STOKER_TRY(kv_, model::KvPool::create(*ledger_, model_->plan().kv,
                                        {.n_pages = std::max<int64_t>(1, pages_for(needs.positions)),
                                         .n_states = needs.n_states(),
                                         .split = &pool_->split()}));
  STOKER_TRY_STATUS(
      model_->read(*file_, *ledger_, *pool_,
                   {.cache = cache,
                    .residency = placement_.residency,
                    .experts = {.budget_bytes = placement_.expert_budget, .reading = options_.expert_reader},
                    .on_bytes = on_bytes}));
  model::Runner::Options options = runner_options(needs, placement_);
  options.experts = model_->experts();
  options.units = model_->unit_store();
  options.embedding = model_->embedding_reader();
  options.layer_inputs = model_->layer_input_reader();
  STOKER_TRY(runner_, model::Runner::create(model_->plan(), *pool_, *ledger_, options));
  load_seconds_ = seconds_since(start);
  return Ok{};
}

}  // namespace stoker::engine
