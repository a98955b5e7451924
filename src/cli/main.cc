#include <csignal>
#include <cstdio>
#include <exception>

#include "base/log.h"
#include "base/str_cat.h"
#include "cli/options.h"

namespace {

using namespace stoker;

int run(int argc, char** argv) {
  CLI::App app{"Runs GGUF language models inside a memory limit that you choose, with the same bits in every layout."};
  app.name("stoker");
  app.set_version_flag("--version", "stoker " STOKER_VERSION);
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "Say more on stderr");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("First steps: stoker run -m MODEL.gguf -p \"The capital of France is\" -n 32");
  const cli::Command commands[] = {cli::make_run(app),     cli::make_tokenize(app),   cli::make_detokenize(app),
                                   cli::make_inspect(app), cli::make_perplexity(app), cli::make_bench(app),
                                   cli::make_synth(app),   cli::make_plan(app),       cli::make_trace(app),
                                   cli::make_embed(app),   cli::make_rerank(app),     cli::make_completion(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      const std::string text = error.get_name() == "CallForVersion" ? str_cat(error.what(), "\n") : app.help();
      return cli::put(text) ? cli::kOk : cli::fail_output();
    }
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      return cli::usage(str_cat("no subcommand ", quoted(argv[1]), "; `stoker --help` lists them"));
    }
    std::fprintf(stderr, "stoker: error: %s; `stoker%s%s --help` lists the options\n", error.what(),
                 app.get_subcommands().empty() ? "" : " ",
                 app.get_subcommands().empty() ? "" : app.get_subcommands()[0]->get_name().c_str());
    return cli::kUsage;
  }
  if (verbose) set_log_level(LogLevel::kInfo);
  for (const cli::Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return cli::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write, with a message
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoker: error: %s\n", error.what());
    return cli::kFailed;
  }
}
