#include "cli/common.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/memory_limit.h"
#include "base/str_cat.h"

namespace stoker::cli {

std::atomic<bool> cancelled{false};

namespace {

constexpr uint64_t kMaxText = 256u << 20;

void on_signal(int signal) {
  if (cancelled.exchange(true)) ::_exit(128 + signal);
}

Result<kernels::KvType> parse_kv_type(const std::string& name) {
  if (name == "f16") return kernels::KvType::kF16;
  if (name == "bf16") return kernels::KvType::kBf16;
  if (name == "f32") return kernels::KvType::kF32;
  return Error{ErrorCode::kInvalidArgument, str_cat("--kv-type is ", quoted(name), ", wanted f16, bf16 or f32")};
}

}  // namespace

int fail(const Error& error) {
  std::fprintf(stderr, "stoker: error: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

int usage(std::string_view message) {
  return fail(Error{ErrorCode::kInvalidArgument, std::string(message)});
}

void add_model_options(CLI::App& app, ModelArgs& args) {
  app.add_option("-m,--model", args.path, "GGUF file, or any shard of a split one")->required()->type_name("FILE");
  app.add_option("--memory", args.memory, "Memory limit, as 6G or 512M; default: what the machine or its control group allows")
      ->type_name("SIZE")->envname("STOKER_MEMORY");
  app.add_option("--threads", args.threads, "Worker threads; default: the processors that this process may use")->type_name("N");
  app.add_flag("--threads-exact", args.threads_exact, "Do not cap the threads at the usable processors");
  app.add_option("--ctx", args.context, "Positions for prompt and answer; default: min(the model's, 8192, what fits)")->type_name("N");
  app.add_option("--batch", args.batch, "Most prompt rows per forward call")->type_name("N")->capture_default_str();
  app.add_option("--kv-type", args.kv_type, "Element type of the key-value cache: f16, bf16 or f32")->type_name("TYPE")->capture_default_str();
  app.add_option("--override", args.overrides, "KEY=VALUE in place of the file's metadata, for those who know better")->type_name("KEY=VALUE");
}

Result<std::unique_ptr<engine::Engine>> open_engine(const ModelArgs& args) {
  const auto bad = [](std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; };
  engine::EngineOptions options{.path = args.path, .threads = args.threads, .threads_exact = args.threads_exact, .context = args.context,
                                .batch = args.batch};
  if (args.context < 0 || (args.context == 0 && args.context_given)) return bad(str_cat("--ctx is ", args.context, ", wanted 1 or more"));
  if (args.threads < 0 || args.threads > 1024) return bad(str_cat("--threads is ", args.threads, ", wanted 1 to 1024"));
  if (!args.memory.empty()) {
    auto bytes = parse_size(args.memory);
    if (!bytes) return bad(str_cat("--memory: ", bytes.error().message));
    options.memory_bytes = *bytes;
  }
  STOKER_TRY(options.kv_type, parse_kv_type(args.kv_type));
  for (const std::string& text : args.overrides) {
    const size_t at = text.find('=');
    if (at == 0 || at == std::string::npos) return bad(str_cat("--override ", quoted(text), ": wanted KEY=VALUE"));
    options.overrides[text.substr(0, at)] = text.substr(at + 1);
  }
  return engine::Engine::open(std::move(options));
}

void add_text_options(CLI::App& app, TextArgs& args, bool with_prompt) {
  auto* group = app.add_option_group("text", "Where the text comes from (at most one); otherwise standard input");
  if (with_prompt) {
    group->add_option("-p,--prompt", args.prompt, "The text itself")->type_name("TEXT")->each([&](const std::string&) { args.prompt_given = true; });
  }
  group->add_option("-f,--file", args.file, "A file with the text")->type_name("FILE");
  group->add_option("--tokens", args.tokens, "A JSON file with token ids: [1, 2, 3]")->type_name("IDS.json");
  group->require_option(0, 1);
}

Result<std::vector<int32_t>> read_ids(const std::string& path) {
  STOKER_TRY(std::string text, read_text(path, kMaxText));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto bad = [&](std::string what) { return Error{ErrorCode::kInvalidArgument, str_cat(path, ": ", what, "; wanted [1, 2, 3] or {\"tokens\": [1, 2, 3]}")}; };
  if (json.is_discarded()) return bad("no JSON");
  const auto* list = json.is_object() && json.contains("tokens") ? &json["tokens"] : &json;
  if (!list->is_array()) return bad("no array of token ids");
  std::vector<int32_t> ids;
  for (const auto& entry : *list) {
    if (!entry.is_number_integer() || entry.get<int64_t>() < 0 || entry.get<int64_t>() > INT32_MAX) {
      return bad(str_cat("entry ", ids.size(), " is no token id"));
    }
    ids.push_back(entry.get<int32_t>());
  }
  return ids;
}

Result<std::vector<int32_t>> read_tokens(const TextArgs& args, const engine::Engine& engine) {
  if (!args.tokens.empty()) return read_ids(args.tokens);
  std::string text = args.prompt;
  if (!args.prompt_given) {
    STOKER_TRY(text, read_text(args.file.empty() ? "-" : args.file, kMaxText));
  }
  if (!engine.tokenizer()) return Error{ErrorCode::kUnsupported, str_cat(engine.options().path, ": ", engine.tokenizer_error(), "; --tokens takes ids instead")};
  if (text.empty()) return Error{ErrorCode::kInvalidArgument, "the prompt is empty: there is nothing to continue"};
  return engine.tokenizer()->encode(text, {.add_special = true, .parse_special = true});
}

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

int fail_output() {
  return fail(Error{ErrorCode::kIo, str_cat("standard output cannot be written: ", std::strerror(errno))});
}

}  // namespace stoker::cli
