#include "cli/common.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/file.h"
#include "base/memory_limit.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/options.h"
#include "cli/synth_file.h"
#include "model/state/state_file.h"

namespace stoker::cli {

std::atomic<bool> cancelled{false};

namespace {

constexpr uint64_t kMaxText = 256u << 20;
int output_errno = 0;

void on_signal(int signal) {
  if (cancelled.exchange(true)) ::_exit(128 + signal);
}

Result<kernels::KvType> parse_kv_type(const std::string& name) {
  for (int i = 0; i < kernels::kKvTypes; ++i) {
    if (const auto type = static_cast<kernels::KvType>(i); model::kv_type_name(type) == name) return type;
  }
  return Error{ErrorCode::kInvalidArgument, str_cat("--kv-type is ", quoted(name), ", wanted q8_0, f16, bf16 or f32")};
}

}  // namespace

int fail(const Error& error) {
  std::fprintf(stderr, "stoker: error: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

int usage(std::string_view message) { return fail(Error{ErrorCode::kInvalidArgument, std::string(message)}); }

void add_model_options(CLI::App& app, ModelArgs& args) {
  app.add_option("-m,--model", args.path, "GGUF file, or any shard of a split one, or synth:SHAPE[:TYPE]")
      ->required()
      ->type_name("FILE");
  add_engine_options(app, args);
}

namespace {

/// One of some words; the first is what it is without.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& name, T& value,
                        const std::vector<std::pair<std::string, T>>& words, const std::string& what) {
  std::string all;
  for (const auto& [word, meaning] : words) all += str_cat(all.empty() ? "" : "|", word);
  const auto set = [&value, words, all, name](const std::string& text) {
    for (const auto& [word, meaning] : words) {
      if (word != text) continue;
      value = meaning;
      return;
    }
    throw CLI::ValidationError(str_cat(name, " is ", quoted(text), ", wanted ", all));
  };
  return app.add_option_function<std::string>(name, set, what)->type_name(all)->default_str(words[0].first);
}

}  // namespace

void add_engine_options(CLI::App& app, ModelArgs& args) {
  // With it CLI11 reads the environment when this subcommand's options have been read, so that these win; without, it
  // does so for all subcommands, called or not.
  app.parse_complete_callback([] {});
  const auto set_memory = [&args](const std::string& text) {
    const auto bytes = parse_size(text);
    if (!bytes) throw CLI::ValidationError(str_cat("--memory: ", bytes.error().message));
    if (*bytes == 0) throw CLI::ValidationError(str_cat("--memory is ", quoted(text), ", wanted more than nothing"));
    args.memory_bytes = *bytes;
  };
  app.add_option_function<std::string>(
         "--memory", set_memory, "Memory limit, as 6G or 512M; default: what the machine or its control group allows")
      ->type_name("SIZE")
      ->envname("STOKER_MEMORY");
  const auto set_cache = [&args](const std::string& text) {
    const auto bytes = parse_size(text);
    if (!bytes) throw CLI::ValidationError(str_cat("--expert-cache: ", bytes.error().message));
    args.expert_cache_bytes = *bytes;
  };
  app.add_option_function<std::string>("--expert-cache", set_cache,
                                       "Stream experts through a cache of this size, as 2G; default: only when they do "
                                       "not all fit, through what --memory leaves")
      ->type_name("SIZE")
      ->envname("STOKER_EXPERT_CACHE");
  add_choice(app, "--expert-reader", args.expert_reader,
             {{"auto", model::ReaderKind::kDefault},
              {"threads", model::ReaderKind::kThreads},
              {"io_uring", model::ReaderKind::kRing}},
             "How streamed experts are read")
      ->envname("STOKER_EXPERT_READER");
  add_choice(
      app, "--expert-lookahead", args.expert_lookahead,
      {{"auto", model::LookaheadUse::kTry}, {"off", model::LookaheadUse::kOff}, {"on", model::LookaheadUse::kOn}},
      "Read ahead what the next layer's router would choose now; auto: while that turns out to be faster")
      ->envname("STOKER_EXPERT_LOOKAHEAD");
  add_integer(app, "--threads", args.threads, 1, 1024,
              "Worker threads; default: the processors that this process may use");
  app.add_flag("--threads-exact", args.threads_exact, "Do not cap the threads at the usable processors");
  app.add_flag("--pin", args.pin, "Keep each worker on one processor: one per core first, by memory node");
  app.add_flag("--no-numa", args.no_numa,
               "Where there are several memory nodes, leave it to the system where workers run and weights lie");
  add_integer<int64_t>(app, "--ctx", args.context, 1, engine::Engine::kMostContext,
                       "Positions for prompt and answer; default: min(the model's, 8192, what fits)");
  add_integer<int64_t>(app, "--batch", args.batch, 1, 65536, "Most prompt rows per forward call")->default_str("512");
  app.add_option("--kv-type", args.kv_type, "Element type of the key-value cache: q8_0, f16, bf16 or f32")
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_flag("--yarn-truncate", args.yarn_truncate,
               "Round the bounds of YaRN where the model was trained without (gpt-oss), as other engines do");
  app.add_option("--override", args.overrides, "KEY=VALUE in place of the file's metadata, for those who know better")
      ->type_name("KEY=VALUE");
}

namespace {

Status read_weights(engine::Engine& engine, const engine::Engine::Needs& needs) {
  Progress progress({.label = "loading", .total = engine.model().file_bytes(engine.placement(needs).residency)});
  return engine.load(needs, [&](uint64_t bytes) { progress.add(bytes); });
}

/// What makes each token slow is said, whether asked for or not.
void say_what_streams(const engine::Engine& engine) {
  if (!engine.units()) return;
  const model::ExpertIndex& units = engine.units()->index();
  std::fprintf(
      stderr,
      "the limit of %s does not hold all weights: %zu of their %zu parts, %s, are read from disk for each token, "
      "or prompt\n",
      format_bytes(engine.ledger().limit()).c_str(), units.layers.size(), engine.model().units().size(),
      format_bytes(units.file_bytes()).c_str());
}

}  // namespace

Status load(engine::Engine& engine, const engine::Engine::Needs& needs) {
  STOKER_TRY_STATUS(read_weights(engine, needs));
  say_what_streams(engine);
  return Ok{};
}

Result<engine::EngineOptions> engine_options(const ModelArgs& args) {
  const auto bad = [](std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; };
  engine::EngineOptions options{.memory_bytes = args.memory_bytes,
                                .threads = args.threads,
                                .threads_exact = args.threads_exact,
                                .pin = args.pin,
                                .numa = !args.no_numa,
                                .context = args.context,
                                .batch = args.batch,
                                .expert_cache_bytes = args.expert_cache_bytes,
                                .expert_reader = args.expert_reader,
                                .expert_lookahead = args.expert_lookahead,
                                .keep_routes = args.keep_routes};
  // Asked for here so that a bad STOKER_ISA is no usage error of this command line: it exits 1.
  if (auto isa = pick_isa(); !isa) return Error{ErrorCode::kUnsupported, isa.error().message};
  STOKER_TRY(options.kv_type, parse_kv_type(args.kv_type));
  for (const std::string& text : args.overrides) {
    const size_t at = text.find('=');
    if (at == 0 || at == std::string::npos) return bad(str_cat("--override ", quoted(text), ": wanted KEY=VALUE"));
    options.overrides[text.substr(0, at)] = text.substr(at + 1);
  }
  if (args.yarn_truncate) options.overrides["rope.scaling.yarn_truncate"] = "1";
  return options;
}

Result<std::unique_ptr<engine::Engine>> open_engine(const ModelArgs& args) {
  STOKER_TRY(engine::EngineOptions options, engine_options(args));
  STOKER_TRY(options.path, model_file(args.path));
  return engine::Engine::open(std::move(options));
}

void add_text_options(CLI::App& app, TextArgs& args, bool with_prompt) {
  auto* group = app.add_option_group("text", "Where the text comes from (at most one); otherwise standard input");
  // Not straight into the optional, which CLI11 leaves empty for an empty string.
  const auto add = [&](const char* names, std::optional<std::string>& value, const char* what) {
    return group->add_option_function<std::string>(
        names, [&value](const std::string& text) { value = text; }, what);
  };
  if (with_prompt) {
    args.what = "prompt";
    add("-p,--prompt", args.prompt, "The text itself")->type_name("TEXT");
  }
  add("-f,--file", args.file, "A file with the text")->type_name("FILE");
  add("--tokens", args.tokens, "A JSON file with token ids: [1, 2, 3]")->type_name("IDS.json");
  group->require_option(0, 1);
}

namespace {

// What a byte of input takes at most: twice itself while it is read, and a second form of the text; JSON's values where
// each is one digit and a comma.
constexpr uint64_t kPerTextByte = 4, kPerJsonByte = 24;
constexpr uint64_t kLongText = 256u << 10;  // Shorter ones are part of the process.

/// The whole of `path`, charged to the engine when it is long.
Result<std::string> read_input(const std::string& path, engine::Engine& engine, uint64_t per_byte) {
  const uint64_t most = std::clamp<uint64_t>(engine.ledger().available() / per_byte, kLongText, kMaxText);
  auto text = read_text(path, most);
  if (!text && text.error().code == ErrorCode::kInvalidArgument && most < kMaxText)
    return Error{ErrorCode::kOutOfMemory, str_cat(text.error().message, ", which is what the memory limit leaves")};
  if (text && text->size() >= kLongText) engine.hold("text", text->size() * per_byte);
  return text;
}

Error bad_ids(const std::string& path, std::string_view what, std::string_view wanted) {
  const std::string name = path == "-" ? "standard input" : path;
  return Error{ErrorCode::kInvalidArgument, str_cat(name, ": ", what, "; wanted ", wanted)};
}

constexpr std::string_view kOneList = "[1, 2, 3] or {\"tokens\": [1, 2, 3]}", kManyLists = "[[1, 2, 3], [4, 5]]";

Result<std::vector<int32_t>> ids_of(const nlohmann::json& list, const std::string& path, std::string_view wanted) {
  if (!list.is_array()) return bad_ids(path, "no array of token ids", wanted);
  std::vector<int32_t> ids;
  for (const auto& entry : list) {
    if (!entry.is_number_integer() || entry.get<int64_t>() < 0 || entry.get<int64_t>() > INT32_MAX) {
      return bad_ids(path, str_cat("entry ", ids.size(), " is no token id"), wanted);
    }
    ids.push_back(entry.get<int32_t>());
  }
  return ids;
}

Result<std::vector<int32_t>> parse_ids(std::string_view text, const std::string& path) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad_ids(path, "no JSON", kOneList);
  return ids_of(json.is_object() && json.contains("tokens") ? json["tokens"] : json, path, kOneList);
}

}  // namespace

Result<std::vector<int32_t>> read_ids(const std::string& path) {
  STOKER_TRY(std::string text, read_text(path, kMaxText));
  return parse_ids(text, path);
}

Result<std::vector<std::string>> read_lines(const std::string& path, engine::Engine& engine) {
  STOKER_TRY(const std::string text, read_input(path, engine, kPerTextByte));
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t size = end > at && text[end - 1] == '\r' ? end - at - 1 : end - at;
    lines.push_back(text.substr(at, size));
    at = end + 1;
  }
  return lines;
}

Result<std::vector<std::vector<int32_t>>> read_id_lists(const std::string& path, engine::Engine& engine) {
  STOKER_TRY(const std::string text, read_input(path, engine, kPerJsonByte));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad_ids(path, "no JSON", kManyLists);
  if (!json.is_array() || json.empty()) return bad_ids(path, "no array of lists", kManyLists);
  std::vector<std::vector<int32_t>> lists;
  for (const auto& entry : json) {
    STOKER_TRY(std::vector<int32_t> ids, ids_of(entry, path, kManyLists));
    lists.push_back(std::move(ids));
  }
  return lists;
}

Result<std::vector<int32_t>> read_tokens(const TextArgs& args, engine::Engine& engine, bool goes_on) {
  if (args.tokens) {
    STOKER_TRY(std::string json, read_input(*args.tokens, engine, kPerJsonByte));
    return parse_ids(json, *args.tokens);
  }
  std::string text = args.prompt.value_or("");
  if (!args.prompt) {
    STOKER_TRY(text, read_input(args.file.value_or("-"), engine, kPerTextByte));
  }
  if (!engine.tokenizer())
    return Error{ErrorCode::kUnsupported,
                 str_cat(engine.options().path, ": ", engine.tokenizer_error(), "; --tokens takes ids instead")};
  if (text.empty())
    return Error{ErrorCode::kInvalidArgument, str_cat("the ", args.what, " is empty: there is nothing to read")};
  std::vector<int32_t> tokens = engine.tokenizer()->encode(text, {.add_special = !goes_on, .parse_special = true});
  if (text.size() >= kLongText) engine.hold("tokens", tokens.capacity() * sizeof(int32_t));
  return tokens;
}

bool exists(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

std::string home_folder() {
  const char* home = std::getenv("STOKER_HOME");
  if (home && *home) return home;
  const char* user = std::getenv("HOME");
  return user && *user ? str_cat(user, "/.cache/stoker") : "";
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
    if (n <= 0) {
      output_errno = errno;
      return false;
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

int fail_output() {
  return fail(Error{ErrorCode::kIo, str_cat("standard output cannot be written: ", std::strerror(output_errno))});
}

}  // namespace stoker::cli
