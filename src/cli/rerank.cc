#include "engine/rerank.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/str_cat.h"
#include "cli/options.h"
#include "cli/texts.h"

namespace stoker::cli {
namespace {

struct RerankArgs {
  ModelArgs model;
  std::string query;
  std::vector<std::string> documents;
  std::optional<std::string> file;
  int64_t top_n = kMostTokens;
  bool json = false, digest = false;
};

/// The command line's, or the lines of a file.
Result<std::vector<std::string>> read_documents(const RerankArgs& args, engine::Engine& engine) {
  std::vector<std::string> documents = args.documents;
  if (documents.empty()) {
    STOKER_TRY(documents, read_lines(args.file.value_or("-"), engine));
  }
  if (documents.empty()) return Error{ErrorCode::kInvalidArgument, "there is no document: give some, or lines with -f"};
  return documents;
}

/// As the APIs of rerankers answer.
std::string ranks_as_json(std::span<const float> scores, std::span<const size_t> order,
                          const engine::RankPrompts& prompts, const engine::Engine& engine) {
  nlohmann::ordered_json out;
  const std::string& name = engine.model().config().name;
  out["object"] = "list";
  out["model"] = name.empty() ? engine.options().path : name;
  size_t n = 0;
  for (const auto& ids : prompts.ids) n += ids.size();
  out["usage"] = {{"prompt_tokens", n}, {"total_tokens", n}};
  out["results"] = nlohmann::ordered_json::array();
  for (const size_t i : order) out["results"].push_back({{"index", i}, {"relevance_score", scores[i]}});
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Score, number from 1 on, document.
std::string ranks_as_lines(std::span<const float> scores, std::span<const size_t> order,
                           std::span<const std::string> documents) {
  std::string out;
  char number[32];
  for (const size_t i : order) {
    std::snprintf(number, sizeof number, "%.9g", static_cast<double>(scores[i]));
    std::string document = documents[i];
    std::replace(document.begin(), document.end(), '\n', ' ');
    out += str_cat(number, "\t", i + 1, "\t", document, "\n");
  }
  return out;
}

Result<engine::RankPrompts> make_prompts(const RerankArgs& args, std::span<const std::string> documents,
                                         engine::Engine& engine) {
  STOKER_TRY(engine::RankPrompts prompts, engine::rank_prompts(engine, args.query, documents));
  hold_tokens(engine, prompts.ids);
  STOKER_TRY(const int64_t context, engine::longest_text(engine));
  STOKER_TRY(const engine::Engine::Needs needs, engine::rank_needs(engine, prompts, context));
  STOKER_TRY_STATUS(load(engine, needs));
  return prompts;
}

int run(const RerankArgs& args) {
  engine::Digest digest;
  auto engine = open_engine(args.model);
  if (!engine) return fail(engine.error());
  if (const auto pooling = engine::pooling_of(**engine, {.pooling = engine::Pooling::kRank}); !pooling)
    return fail(pooling.error());  // before the documents are read
  const auto documents = read_documents(args, **engine);
  if (!documents) return fail(documents.error());
  const auto prompts = make_prompts(args, *documents, **engine);
  if (!prompts) return fail(prompts.error());
  if (const std::string note = engine::rank_note(**engine); !note.empty()) log_warn(note);
  const auto scores =
      with_progress("ranking", prompts->ids, {.digest = args.digest ? &digest : nullptr},
                    [&](const engine::EmbedOptions& watched) { return engine::rerank(**engine, *prompts, watched); });
  if (!scores) return fail(scores.error());
  std::vector<size_t> order = engine::best_first(*scores);
  order.resize(std::min(order.size(), static_cast<size_t>(args.top_n)));
  const std::string out =
      args.json ? ranks_as_json(*scores, order, *prompts, **engine) : ranks_as_lines(*scores, order, *documents);
  if (!put(out)) return fail_output();
  if (args.digest) std::fprintf(stderr, "digest: %s\n", digest.hex().c_str());
  return kOk;
}

}  // namespace

Command make_rerank(CLI::App& root) {
  auto args = std::make_shared<RerankArgs>();
  CLI::App* app = root.add_subcommand("rerank", "Scores of documents for a query, the best first");
  add_model_options(*app, args->model);
  app->add_option("-q,--query", args->query, "What the documents are to answer")->required()->type_name("TEXT");
  auto* documents =
      app->add_option("document", args->documents, "The documents; otherwise the lines of -f, or of standard input")
          ->type_name("TEXT");
  app->add_option("-f,--file", args->file, "A file with one document per line")->type_name("FILE")->excludes(documents);
  add_integer<int64_t>(*app, "--top-n", args->top_n, 1, kMostTokens, "Print the best N only");
  app->add_flag("--json", args->json, "Print JSON as the APIs of rerankers answer");
  app->add_flag("--digest", args->digest, "Print a digest of all scores, on stderr");
  return {app, [args] { return run(*args); }};
}

}  // namespace stoker::cli
