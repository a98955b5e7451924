#include "engine/engine.h"

#include <algorithm>
#include <chrono>

#include "base/checked.h"
#include "base/log.h"
#include "base/memory_limit.h"
#include "base/str_cat.h"

namespace stoker::engine {
namespace {

constexpr int64_t kPage = kernels::kTilePositions;
constexpr uint64_t kMargin = 256u << 20;
constexpr int64_t kShortContext = 2048;  ///< Rather than less, experts are streamed.
constexpr std::string_view kExpertCache = "expert cache";
constexpr model::Residency kStreamed{.stream_experts = true, .read_embedding = true};

int64_t pages_for(int64_t positions) { return (positions + kPage - 1) / kPage; }

Result<std::unique_ptr<Pool>> make_pool(const EngineOptions& options) {
  const int usable = usable_cpus();
  int threads = options.threads == 0 ? usable : options.threads;
  if (threads > usable && !options.threads_exact) {
    log_warn(threads, " threads asked for, ", usable, " processors usable: running ", usable,
             " (--threads-exact lifts this)");
    threads = usable;
  }
  return Pool::create({.n_threads = threads, .pin = options.pin});
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
  for (auto& line : model::Runner::memory(model_->plan(), runner_options(needs, placement), pool_->size()))
    lines.push_back(std::move(line));
  for (Ledger::Line& line : lines) line.bytes = Buffer::charged(line.bytes);
  lines.insert(lines.end(), not_held_.begin(), not_held_.end());
  return lines;
}

/// What the limit leaves for a cache of experts besides all else.
uint64_t Engine::room_for_experts(const Needs& needs, int64_t max_rows) const {
  uint64_t others = 0;
  for (const Ledger::Line& line : memory(needs, {.residency = kStreamed, .max_rows = max_rows})) {
    if (line.name != kExpertCache) others += line.bytes;
  }
  const uint64_t available = ledger_->available();
  return Buffer::most_within(available > others ? available - others : 0);
}

Placement Engine::placement(const Needs& needs) const {
  const Placement whole = resident(needs);
  const model::ExpertIndex& index = model_->expert_index();
  if (index.layers.empty()) return whole;
  if (!options_.expert_cache_bytes && total(memory(needs, whole)) <= ledger_->available()) return whole;
  Placement streamed{.residency = kStreamed, .max_rows = std::max(whole.max_rows, needs.prompt_rows)};
  const auto budget = [&](int64_t rows) {
    return options_.expert_cache_bytes ? *options_.expert_cache_bytes
                                       : std::min(room_for_experts(needs, rows), index.bytes());
  };
  // A prompt read at once reads each expert once, but its rows take from the cache: at most half of it.
  const uint64_t most = budget(whole.max_rows);
  const auto too_much = [&](int64_t rows) {
    return options_.expert_cache_bytes
               ? total(memory(needs, {kStreamed, *options_.expert_cache_bytes, rows})) > ledger_->available()
               : budget(rows) < most / 2;
  };
  while (streamed.max_rows > whole.max_rows && too_much(streamed.max_rows)) {
    streamed.max_rows = std::max(whole.max_rows, streamed.max_rows / 2);
  }
  streamed.expert_budget = budget(streamed.max_rows);
  return streamed;
}

/// What takes the least memory: nothing can be had below it.
Placement Engine::smallest(const Needs& needs) const {
  const Placement whole = resident(needs);
  if (model_->expert_index().layers.empty()) return whole;
  const Placement streamed{kStreamed, options_.expert_cache_bytes.value_or(0), whole.max_rows};
  // The windows for reads may be more than all experts of a tiny model.
  const bool less = total(memory(needs, whole)) <= total(memory(needs, streamed));
  return less && !options_.expert_cache_bytes ? whole : streamed;
}

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
  const Placement streamed = smallest(needs);
  const bool must_stream = options_.expert_cache_bytes && streamed.residency.stream_experts;
  int64_t pages = must_stream ? 0 : pages_that_fit(needs, resident(needs), n_sequences, 1);
  if (streamed.residency.stream_experts && pages < pages_for(wanted)) {
    // Half for the cache of experts, unless the text itself needs more.
    pages = pages_that_fit(needs, streamed, n_sequences, options_.expert_cache_bytes ? 1 : 2);
    if (pages < pages_for(least)) pages = std::min(pages_for(least), pages_that_fit(needs, streamed, n_sequences, 1));
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

Status Engine::fits(const Needs& needs) const {
  if (total(memory(needs, placement(needs))) <= ledger_->available()) return Ok{};
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
  if (!placement_.residency.stream_experts && file_bytes <= ledger_->available() - wanted) {
    hold("page cache", file_bytes);
    cache = BulkReader::Cache::kFill;
  }
  STOKER_TRY(kv_, model::KvPool::create(*ledger_, model_->plan().kv,
                                        {.n_pages = std::max<int64_t>(1, pages_for(needs.positions))}));
  STOKER_TRY_STATUS(
      model_->read(*file_, *ledger_, *pool_,
                   {.cache = cache,
                    .residency = placement_.residency,
                    .experts = {.budget_bytes = placement_.expert_budget, .reading = options_.expert_reader},
                    .on_bytes = on_bytes}));
  model::Runner::Options options = runner_options(needs, placement_);
  options.experts = model_->experts();
  options.embedding = model_->embedding_reader();
  STOKER_TRY(runner_, model::Runner::create(model_->plan(), *pool_, *ledger_, options));
  load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Ok{};
}

}  // namespace stoker::engine
