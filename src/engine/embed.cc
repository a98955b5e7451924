#include "engine/embed.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/str_cat.h"
#include "engine/pooler.h"
#include "model/arch/arch.h"

namespace stoker::engine {
namespace {

constexpr std::pair<std::string_view, Pooling> kPoolings[] = {{"none", Pooling::kNone},
                                                              {"mean", Pooling::kMean},
                                                              {"cls", Pooling::kFirst},
                                                              {"last", Pooling::kLast},
                                                              {"rank", Pooling::kRank}};

int64_t size_of(const std::vector<int32_t>& text) { return static_cast<int64_t>(text.size()); }

/// Consecutive texts that are read in one call: as many as have room in `rows`, at least one.
size_t end_of_call(Texts texts, size_t begin, int64_t rows) {
  size_t end = begin;
  for (int64_t n = 0; end < texts.size() && (end == begin || n + size_of(texts[end]) <= rows); ++end)
    n += size_of(texts[end]);
  return end;
}

struct Run {
  Engine& engine;
  Texts texts;
  const EmbedOptions& options;
  Pooler pooler;
  int64_t done = 0, all = 0;
  std::vector<Embedding> out{};

  Status step(std::span<const model::Span> spans, size_t first) {
    if (options.cancel && options.cancel->load(std::memory_order_relaxed))
      return Error{ErrorCode::kCancelled, "cancelled"};
    STOKER_TRY(const model::Outputs outputs, engine.runner().forward(spans));
    if (!outputs.failures.empty()) {
      const model::Failure& failure = outputs.failures[0];
      return Error{failure.code, str_cat(options.what, " ", first + failure.span + 1, ": ", failure.message)};
    }
    int64_t row = 0;
    for (const model::Span& span : spans) {
      for (int64_t i = 0; i < span.hidden.size(); ++i) pooler.add(outputs.hidden_row(row++));
      done += static_cast<int64_t>(span.tokens.size());
      const bool ends = &span != &spans.back() || spans.size() > 1 || is_whole(span, first);
      if (ends) finish();
    }
    if (options.on_progress) options.on_progress(done, all);
    return Ok{};
  }
  bool is_whole(const model::Span& span, size_t text) const {
    return span.position + static_cast<int64_t>(span.tokens.size()) == size_of(texts[text]);
  }
  void finish() {
    out.push_back(pooler.finish());
    if (options.digest) options.digest->add(out.back().values.data(), static_cast<int64_t>(out.back().values.size()));
  }

  int64_t second_kind_from(size_t text) const {
    return options.second_kind_from.empty() ? std::numeric_limits<int64_t>::max() : options.second_kind_from[text];
  }

  /// Several whole texts.
  Status together(size_t begin, size_t end) {
    std::vector<model::Sequence> sequences;
    sequences.reserve(end - begin);
    std::vector<model::Span> spans;
    for (size_t i = begin; i < end; ++i) {
      sequences.emplace_back(engine.kv(), size_of(texts[i]));
      spans.push_back({.sequence = &sequences.back(),
                       .tokens = texts[i],
                       .hidden = pooler.wanted_rows(size_of(texts[i])),
                       .second_kind_from = second_kind_from(i)});
    }
    return step(spans, begin);
  }

  /// One text that is longer than a call.
  Status in_pieces(size_t text) {
    const int64_t n = size_of(texts[text]);
    const Range wanted = pooler.wanted_rows(n);
    model::Sequence sequence(engine.kv(), n);
    for (int64_t at = 0, end; at < n; at = end) {
      end = std::min(n, at + engine.runner().max_rows());
      const Range rows{std::max(wanted.begin, at) - at, std::min(wanted.end, end) - at};
      const model::Span span{
          .sequence = &sequence,
          .tokens = std::span(texts[text]).subspan(static_cast<size_t>(at), static_cast<size_t>(end - at)),
          .position = at,
          .hidden = rows.begin < rows.end ? rows : Range{0, 0},
          .second_kind_from = second_kind_from(text)};
      STOKER_TRY_STATUS(step({&span, 1}, text));
    }
    return Ok{};
  }
};

std::string_view rank_tensor(const model::Arch& arch) {
  for (const model::GlobalTensorSpec& spec : arch.globals) {
    const auto* matrix = std::get_if<model::Matrix model::Weights::*>(&spec.slot);
    if (matrix && *matrix == &model::Weights::rank_out) return spec.name;
  }
  return {};
}

Error no_rank_head(const Engine& engine) {
  const model::Arch& arch = *engine.model().config().arch;
  const std::string start = str_cat(engine.options().path, ": it has no head that ranks: ");
  if (const std::string_view tensor = rank_tensor(arch); !tensor.empty()) {
    return Error{ErrorCode::kUnsupported,
                 str_cat(start, "tensor ", tensor, " is missing, which a reranker's file has")};
  }
  std::string known;
  for (const model::Arch* other : model::all_archs()) {
    if (!rank_tensor(*other).empty()) known += str_cat(known.empty() ? "" : ", ", other->name);
  }
  return Error{ErrorCode::kUnsupported, str_cat(start, "this version runs those of ", known, ", not of ", arch.name)};
}

}  // namespace

std::optional<Pooling> pooling_by_name(std::string_view name) {
  for (const auto& [known, pooling] : kPoolings) {
    if (known == name) return pooling;
  }
  return std::nullopt;
}

std::string_view pooling_name(Pooling pooling) {
  for (const auto& [name, known] : kPoolings) {
    if (known == pooling) return name;
  }
  return "unknown";
}

Result<Pooling> pooling_of(const Engine& engine, const EmbedOptions& options) {
  const model::ModelConfig& config = engine.model().config();
  Pooling pooling = options.pooling.value_or(static_cast<Pooling>(config.pooling));
  if (pooling == Pooling::kUnknown) pooling = config.causal ? Pooling::kLast : Pooling::kMean;
  const model::Weights& w = engine.model().weights();
  if (pooling == Pooling::kRank && !w.rank_out) return no_rank_head(engine);
  if (static_cast<bool>(w.dense_2) != static_cast<bool>(w.dense_3)) {
    return Error{ErrorCode::kCorrupt, str_cat(engine.options().path, ": tensor dense_", w.dense_2 ? 3 : 2,
                                              ".weight is missing beside dense_", w.dense_2 ? 2 : 3, ".weight")};
  }
  return pooling;
}

Result<int64_t> longest_text(const Engine& engine) {
  STOKER_TRY(const int64_t context, engine.context());
  const model::Matrix& positions = engine.model().weights().positions;
  return positions ? std::min(context, positions.n_out) : context;
}

Result<Engine::Needs> needs_of(const Engine& engine, Texts texts, int64_t context) {
  constexpr int64_t kPage = kernels::kTilePositions;
  int64_t longest = 1, all = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t n = size_of(texts[i]);
    if (n == 0) return Error{ErrorCode::kInvalidArgument, str_cat("text ", i + 1, " is empty: it has no tokens")};
    if (n > context) {
      return Error{ErrorCode::kInvalidArgument,
                   str_cat("text ", i + 1, " has ", n, " tokens, the context is ", context)};
    }
    longest = std::max(longest, n);
    all += n;
  }
  const int64_t batch = engine.options().batch;
  Engine::Needs needs{.max_rows = std::max<int64_t>(1, std::min(all, batch))};
  if (!engine.model().config().causal) needs.max_rows = std::max(needs.max_rows, longest);
  for (size_t begin = 0, end; begin < texts.size(); begin = end) {
    end = end_of_call(texts, begin, needs.max_rows);
    int64_t positions = 0;
    for (size_t i = begin; i < end; ++i) positions += round_up(size_of(texts[i]), kPage);
    needs.positions = std::max(needs.positions, positions);
    needs.n_sequences = std::max(needs.n_sequences, static_cast<int64_t>(end - begin));
  }
  return needs;
}

uint64_t embedding_bytes(const Engine& engine, Texts texts, const EmbedOptions& options) {
  const auto pooling = pooling_of(engine, options);
  uint64_t n = 0;
  for (const auto& text : texts) n += pooling && *pooling == Pooling::kNone ? text.size() : 1;
  return n * static_cast<uint64_t>(engine.model().config().dim) * sizeof(float) + texts.size() * sizeof(Embedding);
}

Result<std::vector<Embedding>> embed(Engine& engine, Texts texts, const EmbedOptions& options) {
  STOKER_TRY(const Pooling pooling, pooling_of(engine, options));
  Run run{.engine = engine,
          .texts = texts,
          .options = options,
          .pooler = Pooler(engine.model(), pooling, options.normalize)};
  for (const auto& text : texts) run.all += size_of(text);
  run.out.reserve(texts.size());
  const int64_t rows = engine.runner().max_rows();
  for (size_t begin = 0, end; begin < texts.size(); begin = end) {
    end = end_of_call(texts, begin, rows);
    if (size_of(texts[begin]) > rows) {
      STOKER_TRY_STATUS(run.in_pieces(begin));
    } else {
      STOKER_TRY_STATUS(run.together(begin, end));
    }
  }
  return std::move(run.out);
}

}  // namespace stoker::engine
