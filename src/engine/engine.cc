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

int64_t pages_for(int64_t positions) { return (positions + kPage - 1) / kPage; }

uint64_t total(const std::vector<Ledger::Line>& lines) {
  uint64_t sum = 0;
  for (const Ledger::Line& line : lines) sum += line.bytes;
  return sum;
}

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

uint64_t default_memory_limit() {
  const MemoryLimit limit = memory_limit();
  const uint64_t most = limit.bytes / 10 * 9;
  return most > kMargin ? most - kMargin : 0;
}

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
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
  STOKER_TRY(gguf::File file, gguf::File::open(e.options_.path));
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

std::vector<Ledger::Line> Engine::memory(const Needs& needs) const {
  std::vector<Ledger::Line> lines = model_->load_memory(pool_->size());
  const auto kv = static_cast<uint64_t>(model_->plan().kv.page_bytes * pages_for(needs.positions));
  lines.push_back({"kv cache", kv, 0});
  for (auto& line : model::Runner::memory(model_->plan(), {.max_rows = needs.max_rows, .max_logits = needs.max_logits},
                                          pool_->size()))
    lines.push_back(std::move(line));
  for (Ledger::Line& line : lines) line.bytes = Buffer::charged(line.bytes);
  lines.insert(lines.end(), not_held_.begin(), not_held_.end());
  return lines;
}

Result<int64_t> Engine::context(const Needs& needs, int64_t n_sequences) const {
  if (options_.context > 0) return options_.context;
  int64_t context = std::min(model_->config().context_length, kDefaultContext);
  Needs part = needs;
  part.positions = 0;
  const uint64_t fixed = total(memory(part));
  const uint64_t available = ledger_->available();
  const auto page = static_cast<uint64_t>(model_->plan().kv.page_bytes);
  const uint64_t room = Buffer::most_within(available > fixed ? available - fixed : 0);
  const auto pages = static_cast<int64_t>(room / page / static_cast<uint64_t>(n_sequences));
  const int64_t least = std::min(needs.positions, context);
  if (pages < std::max<int64_t>(1, pages_for(least))) {
    part.positions = std::max(kPage, least) * n_sequences;
    return Error{ErrorCode::kOutOfMemory, ledger_->refusal(memory(part))};
  }
  return std::min(context, pages * kPage);
}

Status Engine::load(const Needs& needs, const std::function<void(uint64_t)>& on_bytes) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Ledger::Line> wanted = memory(needs);
  if (total(wanted) > ledger_->available()) return Error{ErrorCode::kOutOfMemory, ledger_->refusal(wanted)};
  // Where the limit has room for the file, it stays in the page cache, and the next start is fast.
  auto cache = BulkReader::Cache::kSpare;
  if (model_->file_bytes() <= ledger_->available() - total(wanted)) {
    hold("page cache", model_->file_bytes());
    cache = BulkReader::Cache::kFill;
  }
  STOKER_TRY(kv_, model::KvPool::create(*ledger_, model_->plan().kv,
                                        {.n_pages = std::max<int64_t>(1, pages_for(needs.positions))}));
  STOKER_TRY_STATUS(model_->read(*file_, *ledger_, *pool_, {.cache = cache, .on_bytes = on_bytes}));
  STOKER_TRY(runner_, model::Runner::create(model_->plan(), *pool_, *ledger_,
                                            {.max_rows = needs.max_rows, .max_logits = needs.max_logits}));
  load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Ok{};
}

}  // namespace stoker::engine
