#include "model/entry.h"

#include <utility>

#include "base/str_cat.h"
#include "model/random_model.h"

namespace stoker::model {
namespace {

/// Copies logits into rows of their own.
class RowCollector final : public LogitsConsumer {
 public:
  RowCollector(std::vector<Decoder::Row>& rows, int64_t n_vocab) : rows_(rows), n_vocab_(n_vocab) {}
  void consume(const LogitsBlock& block, Worker& worker) noexcept override {
    worker.each(block.n, 1, [&](Range range) {
      const float* from = block.logits + range.begin * block.stride;
      std::copy(from, from + n_vocab_, rows_[static_cast<size_t>(block.first + range.begin)].begin());
    });
  }

 private:
  std::vector<Decoder::Row>& rows_;
  int64_t n_vocab_;
};

Range all_rows(std::span<const int32_t> tokens) { return {0, static_cast<int64_t>(tokens.size())}; }

}  // namespace

Result<std::unique_ptr<Decoder>> Decoder::from_file(const gguf::File& file, Options options, ReadOptions read) {
  auto decoder = std::unique_ptr<Decoder>(new Decoder(options.memory_bytes));
  Decoder& d = *decoder;
  STOKER_TRY(d.pool_, Pool::create({.n_threads = options.threads}));
  STOKER_TRY(d.model_, Model::prepare(file, options.load));
  if (d.model_->expert_index().layers.empty()) read.residency = {};
  STOKER_TRY_STATUS(d.model_->read(file, d.ledger_, *d.pool_, std::move(read)));
  const int64_t pages = (options.positions + kernels::kTilePositions - 1) / kernels::kTilePositions;
  STOKER_TRY(d.kv_, KvPool::create(d.ledger_, d.model_->plan().kv,
                                   {.n_pages = pages, .n_states = KvLayout::kStatesPerSequence * options.n_sequences}));
  STOKER_TRY(d.runner_, Runner::create(d.model_->plan(), *d.pool_, d.ledger_,
                                       {.max_rows = options.max_rows,
                                        .experts = d.model_->experts(),
                                        .embedding = d.model_->embedding_reader(),
                                        .layer_inputs = d.model_->layer_input_reader()}));
  return decoder;
}

/// What the model says of its tensors points into the file's directory.
Result<std::unique_ptr<Decoder>> Decoder::from_kept_file(gguf::File file, Options options, ReadOptions read) {
  auto kept = std::make_unique<gguf::File>(std::move(file));
  STOKER_TRY(std::unique_ptr<Decoder> decoder, from_file(*kept, std::move(options), std::move(read)));
  decoder->file_ = std::move(kept);
  return decoder;
}

Result<std::unique_ptr<Decoder>> Decoder::from_gguf(const std::string& path, Options options) {
  STOKER_TRY(gguf::File file, gguf::File::open(path));
  return from_kept_file(std::move(file), std::move(options), {});
}

Result<std::unique_ptr<Decoder>> Decoder::from_gguf_with_expert_cache(const std::string& path, uint64_t budget_bytes,
                                                                      Options options) {
  STOKER_TRY(gguf::File file, gguf::File::open(path));
  auto kept = std::make_unique<gguf::File>(std::move(file));
  STOKER_TRY(std::unique_ptr<Decoder> decoder, from_file(*kept, std::move(options),
                                                         {.residency = {.stream_experts = true, .read_embedding = true},
                                                          .experts = {.budget_bytes = budget_bytes}}));
  decoder->file_ = std::move(kept);
  return decoder;
}

Result<std::unique_ptr<Decoder>> Decoder::new_random_small(ModelConfig config, int64_t n_layers, int64_t vocab,
                                                           uint64_t seed, Options options) {
  STOKER_TRY(std::string bytes, random_model(std::move(config), n_layers, vocab, seed));
  STOKER_TRY(gguf::File file, gguf::File::parse(std::as_bytes(std::span(bytes)), "random model"));
  return from_file(file, std::move(options), {});
}

Result<Decoder::LogitsAndHidden> Decoder::call(Batch batch) {
  LogitsAndHidden out;
  int64_t n_logits = 0;
  for (const Span& span : batch) n_logits += span.logits.size();
  out.logits.assign(static_cast<size_t>(n_logits), Row(static_cast<size_t>(vocab_size())));
  RowCollector collector(out.logits, vocab_size());
  STOKER_TRY(Outputs outputs, runner_->forward(batch, &collector));
  if (!outputs.failures.empty()) return Error{outputs.failures[0].code, std::move(outputs.failures[0].message)};
  for (int64_t i = 0; i < outputs.n_hidden; ++i) {
    out.hidden.emplace_back(outputs.hidden_row(i), outputs.hidden_row(i) + model_->config().dim);
  }
  return out;
}

Result<Decoder::Row> Decoder::forward_token(int32_t token, int64_t position, Sequence& state) {
  return forward_batch_last({&token, 1}, position, state);
}

Result<std::vector<Decoder::Row>> Decoder::forward_batch(std::span<const int32_t> tokens, int64_t position,
                                                         Sequence& state) {
  const Span span{.sequence = &state, .tokens = tokens, .position = position, .logits = all_rows(tokens)};
  STOKER_TRY(LogitsAndHidden out, call({&span, 1}));
  return std::move(out.logits);
}

Result<Decoder::LogitsAndHidden> Decoder::forward_batch_with_hidden(std::span<const int32_t> tokens, int64_t position,
                                                                    Sequence& state) {
  const Span span{.sequence = &state,
                  .tokens = tokens,
                  .position = position,
                  .logits = all_rows(tokens),
                  .hidden = all_rows(tokens)};
  return call({&span, 1});
}

Result<Decoder::Row> Decoder::forward_batch_last(std::span<const int32_t> tokens, int64_t position, Sequence& state) {
  if (tokens.empty()) return Error{ErrorCode::kInvalidArgument, "no tokens: there is no last one"};
  const auto n = static_cast<int64_t>(tokens.size());
  const Span span{.sequence = &state, .tokens = tokens, .position = position, .logits = {n - 1, n}};
  STOKER_TRY(LogitsAndHidden out, call({&span, 1}));
  return std::move(out.logits[0]);
}

Result<std::vector<Decoder::Row>> Decoder::forward_hidden_batch(std::span<const int32_t> tokens, int64_t position,
                                                                Sequence& state) {
  const Span span{.sequence = &state, .tokens = tokens, .position = position, .hidden = all_rows(tokens)};
  STOKER_TRY(LogitsAndHidden out, call({&span, 1}));
  return std::move(out.hidden);
}

Result<std::vector<Decoder::Row>> Decoder::forward_multi_seq(std::span<const int32_t> tokens,
                                                             std::span<const int64_t> positions,
                                                             std::span<Sequence> states) {
  if (tokens.size() != positions.size() || tokens.size() != states.size()) {
    return Error{ErrorCode::kInvalidArgument, str_cat(tokens.size(), " tokens, ", positions.size(), " positions and ",
                                                      states.size(), " sequences; wanted as many of each")};
  }
  std::vector<Span> batch;
  for (size_t i = 0; i < tokens.size(); ++i) {
    batch.push_back(
        {.sequence = &states[i], .tokens = tokens.subspan(i, 1), .position = positions[i], .logits = {0, 1}});
  }
  STOKER_TRY(LogitsAndHidden out, call(batch));
  return std::move(out.logits);
}

}  // namespace stoker::model
