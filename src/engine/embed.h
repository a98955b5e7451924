#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/digest.h"
#include "engine/engine.h"

namespace stoker::engine {

using model::Pooling;

/// "none", "mean", "cls", "last", "rank"; nothing for another name.
std::optional<Pooling> pooling_by_name(std::string_view name);
std::string_view pooling_name(Pooling pooling);

struct EmbedOptions {
  /// How a text's tokens become one vector; not given: as the file says, or the mean of an encoder, the last token of
  /// another model.
  std::optional<Pooling> pooling{};
  bool normalize = true;  ///< Each vector to length 1.
  /// Of each text, where the second kind of text begins (model::Span); none: nowhere.
  std::span<const int64_t> second_kind_from{};
  Digest* digest = nullptr;        ///< Takes all vectors.
  std::string_view what = "text";  ///< For messages.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t done, int64_t all)> on_progress{};  ///< Tokens; between calls.
};

/// Of one text: a vector, or with Pooling::kNone one for each token.
struct Embedding {
  std::vector<float> values;  ///< [n][dim]
  int64_t n = 0;
  int64_t dim = 0;
};

/// What `embed` will do. kUnsupported: a head that ranks is asked for and the file has none. kCorrupt: it has one of
/// two dense layers.
Result<Pooling> pooling_of(const Engine& engine, const EmbedOptions& options);

using Texts = std::span<const std::vector<int32_t>>;

/// Tokens that a text may have: Engine::context, or fewer where the model has a table of positions.
Result<int64_t> longest_text(const Engine& engine);

/// What Engine::load must reserve for these texts, read in calls of at most EngineOptions::batch rows, or where the
/// tokens of a text see each other of its own length. kInvalidArgument: a text without tokens, or longer than
/// `context`; names it, from 1 on.
Result<Engine::Needs> needs_of(const Engine& engine, Texts texts, int64_t context);

/// Bytes of the results; for the ledger.
uint64_t embedding_bytes(const Engine& engine, Texts texts, const EmbedOptions& options);

/// A vector for each text; the bits of each do not depend on the others. kCorrupt: a value that is not finite.
/// kCancelled.
Result<std::vector<Embedding>> embed(Engine& engine, Texts texts, const EmbedOptions& options);

}  // namespace stoker::engine
