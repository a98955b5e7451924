#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "engine/engine.h"

namespace stoker::engine {

/// Which experts the tokens of a run went to, as docs/trace.md describes the file.
struct Trace {
  struct Layer {
    int64_t layer = 0;
    uint64_t slot_bytes = 0;  ///< What an expert takes in the cache.
    uint64_t read_bytes = 0;  ///< What is read of the file for it.
  };
  struct Call {
    int64_t n_tokens = 0;
    size_t first = 0;  ///< Of `visits`.
  };
  /// A layer of a call.
  struct Visit {
    size_t layer = 0;  ///< Index into `layers`.
    size_t first = 0;  ///< Of `routes`.
  };
  std::string model;
  int64_t n_experts = 0, n_used = 0;
  std::vector<Layer> layers;  ///< Ascending.
  std::vector<Call> calls;
  std::vector<Visit> visits;    ///< Of a call ascending by layer.
  std::vector<int32_t> routes;  ///< [rows of the visit][n_used]

  size_t end_of_call(size_t i) const { return i + 1 < calls.size() ? calls[i + 1].first : visits.size(); }
  std::span<const int32_t> routes_of(size_t visit) const;
  uint64_t bytes() const;        ///< All experts in the cache.
  uint64_t cycle_bytes() const;  ///< What one token passes through.
};

/// kCorrupt: names `name` and the line.
Result<Trace> parse_trace(std::string_view text, const std::string& name);
/// kNotFound, kIo, kCorrupt: name the file.
Result<Trace> read_trace(const std::string& path);
std::string to_text(const Trace& trace);

/// Writes a trace while a model runs.
class TraceWriter {
 public:
  /// For an engine opened with EngineOptions::keep_routes. kInvalidArgument: a model without experts. kIo.
  static Result<TraceWriter> create(const std::string& path, const Engine& engine);
  /// The runner's last call.
  Status add(const model::Runner& runner);
  /// The file is there from now on. Nothing may be added afterwards.
  Status commit();

 private:
  explicit TraceWriter(OutputFile file) : file_(std::move(file)) {}
  Status flush(size_t most);
  OutputFile file_;
  std::vector<int64_t> layers_;
  int64_t n_used_ = 0, n_calls_ = 0;
  std::string text_;
};

/// Routes out of nothing: to compare policies without a model.
struct MadeRoutes {
  double zipf = 1;  ///< An expert of rank r is drawn with a weight of r^-zipf; ranks are mixed layer by layer.
  /// How likely a token's expert is also the next token's, without being drawn.
  double persistence = 0;
  int64_t n_experts = 32, n_used = 4, n_layers = 24, n_tokens = 1000;
  uint64_t seed = 1;
};
/// One call per token, experts of 1 MiB. The same on every machine.
Trace make_routes(const MadeRoutes& options);

}  // namespace stoker::engine
