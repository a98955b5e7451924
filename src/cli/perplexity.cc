#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/options.h"
#include "engine/score.h"

namespace stoker::cli {
namespace {

constexpr int64_t kLogitsRows = 64;
constexpr uint64_t kLargeResults = 1u << 20;  // Smaller ones are part of the process.

struct PerplexityArgs {
  ModelArgs model;
  TextArgs text;
  int64_t top = 0;
  std::string logits;
  bool json = false, digest = false;
};

nlohmann::json to_json(const engine::Scores& scores, const std::vector<int32_t>& tokens, int64_t top) {
  nlohmann::json out{{"tokens", tokens},
                     {"logprobs", nlohmann::json::array()},
                     {"perplexity", scores.perplexity},
                     {"seconds", scores.seconds}};
  for (double logprob : scores.logprobs)
    out["logprobs"].push_back(std::isnan(logprob) ? nlohmann::json() : nlohmann::json(logprob));
  if (top > 0) out["top"] = scores.top;
  return out;
}

int run(PerplexityArgs& args) {
  auto engine = open_engine(args.model);
  if (!engine) return fail(engine.error());
  if (auto status = (*engine)->check_logits(); !status) return fail(status.error());
  auto tokens = read_tokens(args.text, **engine);
  if (!tokens) return fail(tokens.error());
  const auto n = static_cast<int64_t>(tokens->size());
  engine::Engine::Needs needs{.max_rows = std::clamp<int64_t>(n, 1, args.model.batch), .max_logits = kLogitsRows};
  auto context = (*engine)->context(needs);
  if (!context) return fail(context.error());
  engine::Digest digest;
  engine::ScoreOptions options;
  options.context = *context;
  options.top = std::min(args.top, (*engine)->model().vocab_size());
  options.digest = args.digest ? &digest : nullptr;
  options.cancel = &cancelled;
  const uint64_t results = engine::score_bytes(n, options.top) * (args.json ? 8 : 1);  // JSON: values and their text
  if (results >= kLargeResults) (*engine)->hold("results", results);
  std::optional<OutputFile> logits;
  if (!args.logits.empty()) {
    auto file = OutputFile::create(args.logits);
    if (!file) return fail(file.error());
    options.logits = &logits.emplace(std::move(*file));
  }
  needs.positions = std::clamp<int64_t>(n, 1, *context);
  needs.max_rows = std::min(needs.max_rows, needs.positions);
  if (auto status = load(**engine, needs); !status) return fail(status.error());
  watch_signals();
  Result<engine::Scores> scores = Error{ErrorCode::kCancelled, ""};
  {
    Progress progress({.label = "scoring", .total = static_cast<uint64_t>(n), .is_bytes = false});
    int64_t seen = 0;
    options.on_progress = [&](int64_t done, int64_t) {
      progress.add(static_cast<uint64_t>(done - std::exchange(seen, done)));
    };
    scores = engine::score(**engine, *tokens, options);
  }
  if (!scores) return fail(scores.error());
  if (logits) {
    if (auto status = logits->commit(); !status) return fail(status.error());
  }
  const std::string out = args.json ? to_json(*scores, *tokens, args.top).dump()
                                    : str_cat("perplexity ", scores->perplexity, " over ", n - 1, " tokens");
  if (!put(out + "\n")) return fail_output();
  if (args.digest) std::fprintf(stderr, "digest: %s\n", digest.hex().c_str());
  return kOk;
}

}  // namespace

Command make_perplexity(CLI::App& root) {
  auto args = std::make_shared<PerplexityArgs>();
  CLI::App* app = root.add_subcommand("perplexity", "How likely the model finds a text, token by token");
  add_model_options(*app, args->model);
  add_text_options(*app, args->text, false);
  add_integer<int64_t>(*app, "--top", args->top, 0, INT32_MAX, "Also the N best tokens per position (with --json)");
  app->add_option("--logits", args->logits, "Write all logits to FILE as raw little-endian f32, [tokens, vocabulary]")
      ->type_name("FILE");
  app->add_flag("--json", args->json, "Print tokens, logprobs (natural), top and perplexity as JSON");
  app->add_flag("--digest", args->digest, "Print a digest of all logits, on stderr");
  return {app, [args] { return run(*args); }};
}

}  // namespace stoker::cli
