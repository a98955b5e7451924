#include "engine/embed.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/math.h"
#include "base/str_cat.h"

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

Range wanted_rows(Pooling pooling, int64_t n) {
  if (pooling == Pooling::kFirst) return {0, 1};
  return pooling == Pooling::kLast ? Range{n - 1, n} : Range{0, n};
}

/// y = w x, each output a sum in double of 8 sums, whose order is that of the inputs.
void multiply(const model::Matrix& w, const kernels::Table& table, std::span<const float> x, std::vector<float>& y) {
  constexpr size_t kSums = 8;
  STOKER_CHECK(w.n_in == static_cast<int64_t>(x.size()));
  std::vector<float> row(x.size());
  y.resize(static_cast<size_t>(w.n_out));
  for (size_t o = 0; o < y.size(); ++o) {
    table.row[static_cast<size_t>(w.type)](
        {.w = w.data, .group_bytes = w.group_bytes, .k = w.n_in, .row = static_cast<int64_t>(o), .out = row.data()});
    std::array<double, kSums> sums{};
    for (size_t i = 0; i < x.size(); ++i) sums[i % kSums] += static_cast<double>(row[i]) * static_cast<double>(x[i]);
    double sum = 0;
    for (const double part : sums) sum += part;
    y[o] = static_cast<float>(sum);
  }
}

/// Vectors of a text's tokens as they come out of calls, and what becomes of them.
class Pooler {
 public:
  Pooler(const Engine& engine, Pooling pooling, bool normalize)
      : model_(engine.model()), pooling_(pooling), normalize_(normalize), dim_(model_.config().dim) {}

  void add(const float* row) {
    ++n_;
    if (pooling_ == Pooling::kMean) {
      sums_.resize(static_cast<size_t>(dim_));
      for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<double>(row[i]);
    } else {
      out_.values.insert(out_.values.end(), row, row + dim_);
    }
  }

  Embedding finish() {
    if (pooling_ == Pooling::kMean) {
      for (const double sum : sums_) out_.values.push_back(static_cast<float>(sum / static_cast<double>(n_)));
      n_ = 1;
    }
    if (pooling_ != Pooling::kNone) through_dense();
    out_.n = std::exchange(n_, 0);
    out_.dim = static_cast<int64_t>(out_.values.size()) / out_.n;
    for (int64_t i = 0; normalize_ && i < out_.n; ++i) to_length_1(out_.values.data() + i * out_.dim);
    sums_.clear();
    return std::exchange(out_, {});
  }

 private:
  void through_dense() {
    for (const model::Matrix* w : {&model_.weights().dense_2, &model_.weights().dense_3}) {
      if (!*w) continue;
      std::vector<float> y;
      multiply(*w, *model_.plan().table, out_.values, y);
      out_.values = std::move(y);
    }
  }

  void to_length_1(float* x) const {
    double sum = 0;
    for (int64_t i = 0; i < out_.dim; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    if (sum == 0) return;
    const double inverse = 1 / math::sqrt(sum);
    for (int64_t i = 0; i < out_.dim; ++i) x[i] = static_cast<float>(static_cast<double>(x[i]) * inverse);
  }

  const model::Model& model_;
  Pooling pooling_;
  bool normalize_;
  int64_t dim_;
  int64_t n_ = 0;
  std::vector<double> sums_;
  Embedding out_;
};

struct Run {
  Engine& engine;
  Texts texts;
  const EmbedOptions& options;
  Pooling pooling;
  Pooler pooler;
  int64_t done = 0, all = 0;
  std::vector<Embedding> out{};

  Status step(std::span<const model::Span> spans, size_t first) {
    if (options.cancel && options.cancel->load(std::memory_order_relaxed))
      return Error{ErrorCode::kCancelled, "cancelled"};
    STOKER_TRY(const model::Outputs outputs, engine.runner().forward(spans));
    if (!outputs.failures.empty()) {
      const model::Failure& failure = outputs.failures[0];
      return Error{failure.code, str_cat("text ", first + failure.span + 1, ": ", failure.message)};
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

  /// Several whole texts.
  Status together(size_t begin, size_t end) {
    std::vector<model::Sequence> sequences;
    sequences.reserve(end - begin);
    std::vector<model::Span> spans;
    for (size_t i = begin; i < end; ++i) {
      sequences.emplace_back(engine.kv(), size_of(texts[i]));
      spans.push_back(
          {.sequence = &sequences.back(), .tokens = texts[i], .hidden = wanted_rows(pooling, size_of(texts[i]))});
    }
    return step(spans, begin);
  }

  /// One text that is longer than a call.
  Status in_pieces(size_t text) {
    const int64_t n = size_of(texts[text]);
    const Range wanted = wanted_rows(pooling, n);
    model::Sequence sequence(engine.kv(), n);
    for (int64_t at = 0, end; at < n; at = end) {
      end = std::min(n, at + engine.runner().max_rows());
      const Range rows{std::max(wanted.begin, at) - at, std::min(wanted.end, end) - at};
      const model::Span span{
          .sequence = &sequence,
          .tokens = std::span(texts[text]).subspan(static_cast<size_t>(at), static_cast<size_t>(end - at)),
          .position = at,
          .hidden = rows.begin < rows.end ? rows : Range{0, 0}};
      STOKER_TRY_STATUS(step({&span, 1}, text));
    }
    return Ok{};
  }
};

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
  if (pooling == Pooling::kRank) {
    return Error{ErrorCode::kUnsupported,
                 str_cat(engine.options().path,
                         ": its vectors are pooled by a head that ranks (rank), which this version "
                         "does not run; none, mean, cls and last can be chosen")};
  }
  const model::Weights& w = engine.model().weights();
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
          .pooling = pooling,
          .pooler = Pooler(engine, pooling, options.normalize)};
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
