#include "engine/embed.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/str_cat.h"
#include "cli/options.h"
#include "cli/texts.h"

namespace stoker::cli {
namespace {

struct EmbedArgs {
  ModelArgs model;
  std::vector<std::string> texts;
  std::optional<std::string> file, tokens;
  std::string pooling;
  bool normalize = true, truncate = false, json = false, similarity = false, digest = false;
};

using Tokens = std::vector<std::vector<int32_t>>;

/// Where the texts come from, one each: the command line, or the lines of a file.
Result<Tokens> read_texts(const EmbedArgs& args, engine::Engine& engine) {
  if (args.tokens) return read_id_lists(*args.tokens, engine);
  std::vector<std::string> texts = args.texts;
  if (texts.empty()) {
    STOKER_TRY(texts, read_lines(args.file.value_or("-"), engine));
  }
  if (texts.empty()) return Error{ErrorCode::kInvalidArgument, "there is no text: give some, or lines with -f"};
  if (!engine.tokenizer()) {
    return Error{ErrorCode::kUnsupported,
                 str_cat(engine.options().path, ": ", engine.tokenizer_error(), "; --tokens takes ids instead")};
  }
  Tokens out;
  for (const std::string& text : texts) {
    // What stands in a text is text: nobody asks for control tokens there.
    out.push_back(engine.tokenizer()->encode(text, {.add_special = true, .parse_special = false}));
  }
  hold_tokens(engine, out);
  return out;
}

/// Cuts what is longer than the context, and keeps the token that ends a text.
void truncate(Tokens& texts, int64_t context, const engine::Engine& engine) {
  const bool keep_last = engine.tokenizer() && engine.tokenizer()->add_eos();
  for (auto& ids : texts) {
    if (static_cast<int64_t>(ids.size()) <= context) continue;
    const int32_t last = ids.back();
    ids.resize(static_cast<size_t>(context));
    if (keep_last) ids.back() = last;
  }
}

std::span<const float> vector_of(const engine::Embedding& text, int64_t i) {
  return std::span(text.values).subspan(static_cast<size_t>(i * text.dim), static_cast<size_t>(text.dim));
}

/// As numbers that give the same floats when they are read back.
void append_numbers(std::string& out, std::span<const float> values, char between) {
  char number[32];
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += between;
    std::snprintf(number, sizeof number, "%.9g", static_cast<double>(values[i]));
    out += number;
  }
}

/// As OpenAI's API answers, which has one vector per text; with a vector per token, `embedding` is a list of them.
bool put_json(const std::vector<engine::Embedding>& texts, const Tokens& tokens, engine::Pooling pooling,
              const engine::Engine& engine) {
  const bool one = pooling != engine::Pooling::kNone;
  size_t n = 0;
  bool written = put("{\"object\":\"list\",\"data\":[");
  for (size_t i = 0; i < texts.size() && written; ++i) {
    std::string entry = str_cat(i > 0 ? ",\n" : "", "{\"object\":\"embedding\",\"index\":", i, ",\"embedding\":");
    if (!one) entry += '[';
    for (int64_t row = 0; row < texts[i].n; ++row) {
      entry += row > 0 ? ",[" : "[";
      append_numbers(entry, vector_of(texts[i], row), ',');
      entry += ']';
    }
    written = put(entry + (one ? "}" : "]}"));
    n += tokens[i].size();
  }
  const std::string& name = engine.model().config().name;
  const nlohmann::json model = name.empty() ? engine.options().path : name;
  return written && put(str_cat("],\n\"model\":", model.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                ",\"usage\":{\"prompt_tokens\":", n, ",\"total_tokens\":", n, "}}\n"));
}

/// A line for each vector; where texts have several, an empty one between texts.
bool put_lines(const std::vector<engine::Embedding>& texts) {
  for (const auto& text : texts) {
    std::string lines;
    for (int64_t row = 0; row < text.n; ++row) {
      append_numbers(lines, vector_of(text, row), ' ');
      lines += '\n';
    }
    if (text.n > 1 && &text != &texts.back()) lines += '\n';
    if (!put(lines)) return false;
  }
  return true;
}

/// Cosines of all pairs.
bool put_cosines(const std::vector<engine::Embedding>& texts) {
  char number[32];
  for (const auto& a : texts) {
    std::string row;
    for (const auto& b : texts) {
      double dot = 0, aa = 0, bb = 0;
      for (size_t i = 0; i < a.values.size(); ++i) {
        const auto x = static_cast<double>(a.values[i]), y = static_cast<double>(b.values[i]);
        dot += x * y, aa += x * x, bb += y * y;
      }
      std::snprintf(number, sizeof number, "%s%.6f", row.empty() ? "" : " ", dot / std::sqrt(aa * bb));
      row += number;
    }
    if (!put(row + "\n")) return false;
  }
  return true;
}

int run(const EmbedArgs& args) {
  engine::Digest digest;
  engine::EmbedOptions options{.normalize = args.normalize, .digest = args.digest ? &digest : nullptr};
  if (!args.pooling.empty()) options.pooling = engine::pooling_by_name(args.pooling);
  auto engine = open_engine(args.model);
  if (!engine) return fail(engine.error());
  const auto pooling = engine::pooling_of(**engine, options);
  if (!pooling) return fail(pooling.error());
  if (*pooling == engine::Pooling::kRank) {
    return fail({ErrorCode::kUnsupported, str_cat(args.model.path, ": the model ranks documents (pooling_type rank), ",
                                                  "`stoker rerank`; --pooling none, mean, cls or last gives vectors")});
  }
  if (args.similarity && *pooling == engine::Pooling::kNone) return usage("--similarity wants one vector per text");
  if (!options.pooling && (*engine)->model().config().pooling < 0) {
    log_warn("the file does not say how vectors are pooled: taking ", engine::pooling_name(*pooling),
             " (--pooling chooses)");
  }
  options.pooling = *pooling;
  auto texts = read_texts(args, **engine);
  if (!texts) return fail(texts.error());
  const auto context = engine::longest_text(**engine);
  if (!context) return fail(context.error());
  if (args.truncate) truncate(*texts, *context, **engine);
  auto needs = engine::needs_of(**engine, *texts, *context);
  if (!needs) {
    const bool too_long = !args.truncate && needs.error().message.find("the context is") != std::string::npos;
    return fail({needs.error().code, str_cat(needs.error().message, too_long ? "; --truncate cuts it" : "")});
  }
  const uint64_t results = engine::embedding_bytes(**engine, *texts, options);
  if (results >= kLargeList) (*engine)->hold("results", results);
  if (auto status = load(**engine, *needs); !status) return fail(status.error());
  const auto vectors = with_progress("embedding", *texts, options, [&](const engine::EmbedOptions& watched) {
    return engine::embed(**engine, *texts, watched);
  });
  if (!vectors) return fail(vectors.error());
  const bool written = args.similarity ? put_cosines(*vectors)
                       : args.json     ? put_json(*vectors, *texts, *pooling, **engine)
                                       : put_lines(*vectors);
  if (!written) return fail_output();
  if (args.digest) std::fprintf(stderr, "digest: %s\n", digest.hex().c_str());
  return kOk;
}

}  // namespace

Command make_embed(CLI::App& root) {
  auto args = std::make_shared<EmbedArgs>();
  CLI::App* app = root.add_subcommand("embed", "Vectors of texts, one for each");
  add_model_options(*app, args->model);
  auto* texts = app->add_option("text", args->texts, "The texts; otherwise the lines of -f, or of standard input")
                    ->type_name("TEXT");
  auto* file = app->add_option("-f,--file", args->file, "A file with one text per line")->type_name("FILE");
  auto* ids = app->add_option("--tokens", args->tokens, "A JSON file with token ids per text: [[1, 2], [3]]")
                  ->type_name("IDS.json");
  file->excludes(texts);
  ids->excludes(texts)->excludes(file);
  app->add_option("--pooling", args->pooling,
                  "How the tokens of a text become one vector: mean, cls (the first), last, "
                  "or none; otherwise as the file says")
      ->check(CLI::IsMember({"none", "mean", "cls", "last"}));
  app->add_flag("--normalize,!--no-normalize", args->normalize, "Vectors of length 1 (default)");
  app->add_flag("--truncate", args->truncate, "Cut texts that are longer than the context");
  auto* json = app->add_flag("--json", args->json, "Print JSON as OpenAI's API answers");
  app->add_flag("--similarity", args->similarity, "Print the cosines of all pairs of texts instead")->excludes(json);
  app->add_flag("--digest", args->digest, "Print a digest of all vectors, on stderr");
  return {app, [args] { return run(*args); }};
}

}  // namespace stoker::cli
