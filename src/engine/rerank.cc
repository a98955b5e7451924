#include "engine/rerank.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/str_cat.h"

namespace stoker::engine {
namespace {

constexpr std::string_view kPromptKey = "tokenizer.chat_template.rerank";
constexpr std::string_view kQuery = "{query}", kDocument = "{document}";

Error refused(const Engine& engine, ErrorCode code, std::string_view what) {
  return Error{code, str_cat(engine.options().path, ": ", what)};
}

/// Which of the head's numbers is the score: the only one, or the share of yes.
Result<size_t> score_index(const Engine& engine) {
  const model::ModelConfig& config = engine.model().config();
  const std::vector<std::string>& labels = config.rank_labels;
  if (!config.rank_softmax && labels.size() <= 1) return size_t{0};
  const auto yes = std::find(labels.begin(), labels.end(), "yes");
  if (config.rank_softmax && yes != labels.end() && labels.size() > 1) {
    return static_cast<size_t>(yes - labels.begin());
  }
  std::string names;
  for (const std::string& label : labels) names += str_cat(names.empty() ? "" : ", ", quoted(label));
  return refused(engine, ErrorCode::kUnsupported,
                 str_cat("its head gives ", config.n_rank_labels(), " numbers (", names, "), wanted ",
                         config.rank_softmax ? "yes and no" : "one score"));
}

/// The file's own prompt with the texts in it, in which control tokens are text.
Result<std::vector<text::Tokenizer::Part>> filled_in(const Engine& engine, std::string_view prompt,
                                                     std::string_view query, std::string_view document) {
  const std::pair<std::string_view, std::string_view> places[] = {{kQuery, query}, {kDocument, document}};
  for (const auto& [place, text] : places) {
    if (prompt.find(place) != std::string_view::npos) continue;
    return refused(engine, ErrorCode::kCorrupt, str_cat("key ", kPromptKey, " has no ", place));
  }
  std::vector<text::Tokenizer::Part> parts;
  while (!prompt.empty()) {
    const auto [place, text] = prompt.find(kQuery) < prompt.find(kDocument) ? places[0] : places[1];
    const size_t at = std::min(prompt.find(place), prompt.size());
    parts.push_back({.text = prompt.substr(0, at), .parse_special = true});
    if (at == prompt.size()) break;
    parts.push_back({.text = text, .parse_special = false});
    prompt.remove_prefix(at + place.size());
  }
  return parts;
}

Status add_prompt(const Engine& engine, std::string_view query, std::string_view document, RankPrompts& out) {
  const text::Tokenizer& tokenizer = *engine.tokenizer();
  STOKER_TRY(const std::optional<std::string> prompt, engine.file().string(kPromptKey));
  if (prompt) {
    STOKER_TRY(const auto parts, filled_in(engine, *prompt, query, document));
    out.ids.push_back(tokenizer.encode(parts));
    return Ok{};
  }
  if (!tokenizer.joins_pairs()) {
    return refused(engine, ErrorCode::kUnsupported,
                   str_cat("key ", kPromptKey, " is missing, and its tokenizer puts nothing between two texts"));
  }
  text::Tokenizer::Pair pair = tokenizer.encode_pair(query, document);
  out.ids.push_back(std::move(pair.ids));
  // Of those whose embeddings know two kinds of text, only BERT's own tokenizer tells them apart.
  const bool tells = tokenizer.model_name() == "bert" && engine.model().weights().token_types.n_out > 1;
  if (tells) out.second_kind_from.push_back(static_cast<int64_t>(pair.second));
  return Ok{};
}

}  // namespace

Result<RankPrompts> rank_prompts(const Engine& engine, std::string_view query, std::span<const std::string> documents) {
  if (const auto pooling = pooling_of(engine, {.pooling = Pooling::kRank}); !pooling) return pooling.error();
  if (const auto index = score_index(engine); !index) return index.error();
  if (!engine.tokenizer()) return refused(engine, ErrorCode::kUnsupported, engine.tokenizer_error());
  if (query.empty()) return Error{ErrorCode::kInvalidArgument, "the query is empty"};
  RankPrompts out;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (documents[i].empty()) return Error{ErrorCode::kInvalidArgument, str_cat("document ", i + 1, " is empty")};
    STOKER_TRY_STATUS(add_prompt(engine, query, documents[i], out));
  }
  return out;
}

std::string rank_note(const Engine& engine) {
  const model::Model& model = engine.model();
  if (model.config().causal || model.weights().rank_dense) return {};
  return "the file lacks the layer before its head, which converters drop: its scores are not the original's, and "
         "their "
         "order can differ";
}

Result<Engine::Needs> rank_needs(const Engine& engine, const RankPrompts& prompts, int64_t context) {
  for (size_t i = 0; i < prompts.ids.size(); ++i) {
    if (static_cast<int64_t>(prompts.ids[i].size()) <= context) continue;
    return Error{ErrorCode::kInvalidArgument, str_cat("document ", i + 1, " with the query has ", prompts.ids[i].size(),
                                                      " tokens, the context is ", context)};
  }
  return needs_of(engine, prompts.ids, context);
}

Result<std::vector<float>> rerank(Engine& engine, const RankPrompts& prompts, EmbedOptions options) {
  STOKER_TRY(const size_t index, score_index(engine));
  options.pooling = Pooling::kRank;
  options.normalize = false;
  options.second_kind_from = prompts.second_kind_from;
  options.what = "document";
  STOKER_TRY(const std::vector<Embedding> heads, embed(engine, prompts.ids, options));
  std::vector<float> scores;
  scores.reserve(heads.size());
  for (const Embedding& head : heads) scores.push_back(head.values[index]);
  return scores;
}

std::vector<size_t> best_first(std::span<const float> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

}  // namespace stoker::engine
