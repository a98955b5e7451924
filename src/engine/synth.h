#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/ledger.h"
#include "base/pool.h"
#include "base/result.h"
#include "engine/synth_shapes.h"
#include "gguf/file.h"

namespace stoker::engine {

struct SynthOptions {
  std::string shape{};
  std::string type{};    ///< Empty: the shape's own.
  int64_t n_layers = 0;  ///< 0: as many as the original has.
  uint32_t seed = 1;
  /// Exponent of the law by which the routers prefer experts, 0 to kMostZipf: the share of the tokens that choose the
  /// r-th most popular of a layer is proportional to r^-zipf (docs/synth.md#routing). 0: all about evenly.
  double zipf = 0;
};
inline constexpr double kMostZipf = 3;
inline constexpr int64_t kMostSynthLayers = 512;

struct SynthPlan;

/// A model of random weights with the shape of a published one, ready to be written. The same options give the same
/// bytes, on every machine and with any number of threads.
class Synth {
 public:
  /// kInvalidArgument: an unknown shape or type, too many layers, an exponent out of range or without experts.
  static Result<Synth> plan(SynthOptions options);
  Synth(Synth&&) noexcept;
  Synth& operator=(Synth&&) noexcept;
  ~Synth();

  /// "gpt-oss-20b-mxfp4", with what else was chosen: "gpt-oss-20b-2l-q8_0-seed7-zipf1".
  std::string name() const;
  /// Of the whole file, but for the header.
  uint64_t tensor_bytes() const;
  int64_t n_parameters() const;

  /// What the file begins with: all but the weights. Takes what the vocabulary needs (synth_vocabulary_bytes).
  Result<std::string> header() const;

  /// Writes the file at `path`, or leaves what is there as it was. Takes 2 MiB a thread and what the vocabulary needs.
  /// `on_bytes` hears, from any thread, of tensor_bytes(); may be empty. `cancel` asks to stop; may be null.
  /// kIo: no room, or writing failed. kOutOfMemory, kCancelled.
  Status write(const std::string& path, Pool& pool, Ledger& ledger, const std::function<void(uint64_t)>& on_bytes = {},
               const std::atomic<bool>* cancel = nullptr) const;

 private:
  explicit Synth(std::unique_ptr<const SynthPlan> plan);
  std::unique_ptr<const SynthPlan> plan_;
};

/// Whether `stoker synth` wrote this file: its weights are random and its text is noise.
bool is_synthetic(const gguf::File& file);

}  // namespace stoker::engine
