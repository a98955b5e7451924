// Scores of documents for a query, out of models that read both at once and have a head for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/embed.h"

namespace stoker::engine {

/// A query with each of some documents, as the model reads them.
struct RankPrompts {
  std::vector<std::vector<int32_t>> ids{};
  std::vector<int64_t> second_kind_from{};  ///< Where documents begin, in models that tell that; otherwise empty.
};

/// kUnsupported: the file has no head that ranks, one that gives something else than one score, or no tokenizer.
/// kCorrupt: the file's own prompt has no place for the query or the document. kInvalidArgument: the query or a
/// document is empty; names it, from 1 on.
Result<RankPrompts> rank_prompts(const Engine& engine, std::string_view query, std::span<const std::string> documents);

/// What is to be known about the scores, for people; may be empty.
std::string rank_note(const Engine& engine);

/// What Engine::load must reserve, as needs_of. kInvalidArgument: a document that is longer than `context` with the
/// query; names it.
Result<Engine::Needs> rank_needs(const Engine& engine, const RankPrompts& prompts, int64_t context);

/// A score for each document, the better the higher; its bits do not depend on the others. Of the options those of
/// pooling are not read. Fails as `embed`.
Result<std::vector<float>> rerank(Engine& engine, const RankPrompts& prompts, EmbedOptions options = {});

/// Indices of the scores, the best first; of equal ones the first.
std::vector<size_t> best_first(std::span<const float> scores);

}  // namespace stoker::engine
