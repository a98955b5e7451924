// What the subcommands share: options, exit codes, the signal flag, output that may fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace CLI {
class App;
}

namespace stoker::cli {

/// Exit codes: 0 done, 1 it failed while running, 2 it was called wrongly.
inline constexpr int kOk = 0, kFailed = 1, kUsage = 2;

/// Lists of so many bytes and more are charged; smaller ones are part of the process.
inline constexpr uint64_t kLargeList = 1u << 20;

/// Prints "stoker: error: MESSAGE" and returns the exit code for it.
int fail(const Error& error);
int usage(std::string_view message);

/// Options of every subcommand that runs a model.
struct ModelArgs {
  std::string path;
  uint64_t memory_bytes = 0;
  std::optional<uint64_t> expert_cache_bytes;
  int threads = 0;
  bool threads_exact = false;
  bool pin = false;
  bool no_numa = false;
  int64_t context = 0;
  int64_t batch = 512;
  std::string kv_type = "f16";
  bool yarn_truncate = false;
  model::ReaderKind expert_reader = model::ReaderKind::kDefault;
  model::LookaheadUse expert_lookahead = model::LookaheadUse::kTry;
  bool keep_routes = false;
  std::vector<std::string> overrides;
};
void add_model_options(CLI::App& app, ModelArgs& args);
/// Those but the model itself.
void add_engine_options(CLI::App& app, ModelArgs& args);
/// Without `path`. Errors of the user are kInvalidArgument.
Result<engine::EngineOptions> engine_options(const ModelArgs& args);
/// Checks the options and opens the file. Errors of the user are kInvalidArgument.
Result<std::unique_ptr<engine::Engine>> open_engine(const ModelArgs& args);
/// Engine::load with a progress bar on a terminal.
Status load(engine::Engine& engine, const engine::Engine::Needs& needs);

/// Where a text comes from: one of -p, -f, --tokens, or standard input.
struct TextArgs {
  std::optional<std::string> prompt, file, tokens;
  std::string_view what = "text";  ///< For messages.
  bool given() const { return prompt || file || tokens; }
};
void add_text_options(CLI::App& app, TextArgs& args, bool with_prompt);
/// The text's tokens, with BOS and EOS as the file asks unless it goes on another one; ids from --tokens as they are. A
/// long text is charged to the engine.
Result<std::vector<int32_t>> read_tokens(const TextArgs& args, engine::Engine& engine, bool goes_on = false);
/// The lines of a file, "-" for standard input; a long one is charged to the engine.
Result<std::vector<std::string>> read_lines(const std::string& path, engine::Engine& engine);
/// Lists of ids in a JSON file: [[1, 2], [3]].
Result<std::vector<std::vector<int32_t>>> read_id_lists(const std::string& path, engine::Engine& engine);
/// The ids in a JSON file: [1, 2, 3] or {"tokens": [1, 2, 3]}.
Result<std::vector<int32_t>> read_ids(const std::string& path);

/// Whether there is something of this name.
bool exists(const std::string& path);

/// ${STOKER_HOME:-~/.cache/stoker}, where this program keeps what it makes; empty when neither variable is set.
std::string home_folder();

/// Set by Ctrl-C and SIGTERM once `watch_signals` was called; a second Ctrl-C ends the process at once.
extern std::atomic<bool> cancelled;
void watch_signals();

/// Writes to standard output at once. False when it cannot be written (a closed pipe, a full disk); `fail_output`
/// reports the first such failure.
bool put(std::string_view text);
int fail_output();

/// Subcommands: each adds itself and sets `run`, which returns the exit code.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};
Command make_run(CLI::App& root);
Command make_tokenize(CLI::App& root);
Command make_detokenize(CLI::App& root);
Command make_inspect(CLI::App& root);
Command make_perplexity(CLI::App& root);
Command make_bench(CLI::App& root);
Command make_synth(CLI::App& root);
Command make_plan(CLI::App& root);
Command make_trace(CLI::App& root);
Command make_embed(CLI::App& root);
Command make_rerank(CLI::App& root);
Command make_completion(CLI::App& root);

}  // namespace stoker::cli
