#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/str_cat.h"
#include "cli/options.h"
#include "cli/synth_file.h"
#include "gguf/file.h"
#include "text/tokenizer.h"

namespace stoker::cli {
namespace {

constexpr uint64_t kMaxText = 1u << 30;

struct TokenizeArgs {
  std::string model, text, file;
  bool text_given = false, json = false;
  bool special = true, add_special = false;
};

Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path) {
  STOKER_TRY(const ModelHeader header, open_header(path));
  auto tokenizer = text::Tokenizer::from_gguf(*header.file);
  if (!tokenizer) return Error{tokenizer.error().code, str_cat(path, ": ", tokenizer.error().message)};
  return tokenizer;
}

/// The bytes of a token as text for people: what is not valid UTF-8 becomes U+FFFD.
std::string shown(const text::Tokenizer& tokenizer, int32_t id) {
  text::Utf8Stream stream;
  std::string out = stream.push(tokenizer.token_bytes(id, {.show_special = true}));
  return out + stream.finish();
}

int tokenize(const TokenizeArgs& args) {
  auto tokenizer = open_tokenizer(args.model);
  if (!tokenizer) return fail(tokenizer.error());
  std::string input = args.text;
  if (!args.text_given) {
    auto text = read_text(args.file.empty() ? "-" : args.file, kMaxText);
    if (!text) return fail(text.error());
    input = std::move(*text);
  }
  const auto ids = (*tokenizer)->encode(input, {.add_special = args.add_special, .parse_special = args.special});
  std::string out;
  if (args.json) {
    out = nlohmann::json{{"tokens", ids}}.dump() + "\n";
  } else {
    for (int32_t id : ids) out += str_cat(id, "\t", nlohmann::json(shown(**tokenizer, id)).dump(), "\n");
  }
  return put(out) ? kOk : fail_output();
}

int detokenize(const TokenizeArgs& args) {
  auto tokenizer = open_tokenizer(args.model);
  if (!tokenizer) return fail(tokenizer.error());
  auto ids = read_ids(args.file.empty() ? "-" : args.file);
  if (!ids) return fail(ids.error());
  for (int32_t id : *ids) {
    if (id >= (*tokenizer)->vocab_size()) {
      return usage(str_cat("token ", id, " is outside the vocabulary of ", (*tokenizer)->vocab_size()));
    }
  }
  const text::Tokenizer::DecodeOptions options{.show_special = args.special};
  return put(args.json ? nlohmann::json{{"text", (*tokenizer)->decode(*ids, options)}}.dump() + "\n"
                       : (*tokenizer)->decode_bytes(*ids, options))
             ? kOk
             : fail_output();
}

}  // namespace

Command make_tokenize(CLI::App& root) {
  auto args = std::make_shared<TokenizeArgs>();
  CLI::App* app = root.add_subcommand("tokenize", "Token ids and pieces of a text; works on vocabulary-only files");
  app->add_option("-m,--model", args->model, "GGUF file")->required()->type_name("FILE");
  auto* text =
      app->add_option("text", args->text, "The text; otherwise -f, otherwise standard input")->type_name("TEXT");
  app->add_option("-f,--file", args->file, "A file with the text")->type_name("FILE")->excludes(text);
  app->add_flag("--json", args->json, "Print {\"tokens\": [..]}");
  app->add_flag("--special,!--no-special", args->special, "Recognise special tokens in the text (default)");
  app->add_flag("--add-special,!--no-add-special", args->add_special, "Add BOS and EOS as the file asks");
  return {app, [args, app] {
            args->text_given = app->count("text") > 0;
            return tokenize(*args);
          }};
}

Command make_detokenize(CLI::App& root) {
  auto args = std::make_shared<TokenizeArgs>();
  args->special = false;
  CLI::App* app = root.add_subcommand("detokenize", "The text of token ids, byte for byte");
  app->add_option("-m,--model", args->model, "GGUF file")->required()->type_name("FILE");
  app->add_option("-f,--file,ids", args->file, "A JSON file with the ids, [1, 2, 3]; otherwise standard input")
      ->type_name("IDS.json");
  app->add_flag("--json", args->json, "Print {\"text\": ..}; invalid UTF-8 becomes U+FFFD");
  app->add_flag("--special", args->special, "Show control tokens");
  return {app, [args] { return detokenize(*args); }};
}

}  // namespace stoker::cli
