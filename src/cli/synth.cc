// stoker synth
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "base/memory_limit.h"
#include "base/str_cat.h"
#include "cli/options.h"
#include "cli/synth_file.h"

namespace stoker::cli {
namespace {

struct SynthArgs {
  engine::SynthOptions synth;
  std::string out;
  int threads = 0;
  bool force = false, list = false;
};

/// 30532122624 as "30.5 B".
std::string count_text(int64_t n) {
  const bool millions = n < 1000000000;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %c", static_cast<double>(n) / (millions ? 1e6 : 1e9), millions ? 'M' : 'B');
  return text;
}

int list() {
  std::string out = "shape                parameters        size  type\n";
  for (const engine::SynthShape& shape : engine::synth_shapes()) {
    const auto synth = engine::Synth::plan({.shape = std::string(shape.name)});
    if (!synth) return fail(synth.error());
    char line[128];
    std::snprintf(line, sizeof line, "%-20s %10s  %10s  %s\n", std::string(shape.name).c_str(),
                  count_text(synth->n_parameters()).c_str(), format_bytes(synth->tensor_bytes()).c_str(),
                  std::string(shape.type).c_str());
    out += line;
  }
  out += "types:";
  for (const engine::SynthType& type : engine::synth_types()) out += str_cat(" ", type.name);
  return put(out + "\n") ? kOk : fail_output();
}

/// Where the file goes. One of our own folder that is there already is what was asked for; another one is not ours.
Result<std::string> write(const SynthArgs& args) {
  STOKER_TRY(const engine::Synth synth, engine::Synth::plan(args.synth));
  std::string path = args.out;
  if (path.empty()) {
    STOKER_TRY(path, synth_path(synth));
    std::error_code ignored;  // then the file cannot be written either, which says why
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  }
  if (!args.force && exists(path)) {
    if (args.out.empty()) return path;
    return Error{ErrorCode::kIo, str_cat(path, ": is there already; --force replaces it")};
  }
  STOKER_TRY_STATUS(write_synth(synth, path, args.threads));
  return path;
}

int run(const SynthArgs& args) {
  if (args.list) return list();
  if (args.synth.shape.empty()) return usage("a SHAPE is wanted; `stoker synth --list` prints them");
  const auto path = write(args);
  if (!path) return fail(path.error());
  return put(*path + "\n") ? kOk : fail_output();
}

void set_zipf(double& zipf, const std::string& text) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, zipf);
  if (error == std::errc() && at == end && zipf >= 0 && zipf <= engine::kMostZipf) return;
  throw CLI::ValidationError(str_cat("--zipf is ", quoted(text), ", wanted a number from 0 to ", engine::kMostZipf));
}

}  // namespace

Command make_synth(CLI::App& root) {
  auto args = std::make_shared<SynthArgs>();
  CLI::App* app = root.add_subcommand("synth",
                                      "Write a model of random weights with the shape of a published one, to measure "
                                      "this machine with; prints its path");
  app->add_option("shape", args->synth.shape, "Whose shape; --list prints them")->type_name("SHAPE");
  app->add_option("-o,--output", args->out, "Where to; default: ${STOKER_HOME:-~/.cache/stoker}/synth/SHAPE-TYPE.gguf")
      ->type_name("FILE");
  app->add_option("--type", args->synth.type, "Type of the weights; --list prints them; default: the shape's")
      ->type_name("TYPE");
  add_integer<int64_t>(*app, "--layers", args->synth.n_layers, 1, engine::kMostSynthLayers,
                       "Layers; default: those of the original");
  add_integer<uint32_t>(*app, "--seed", args->synth.seed, 0, UINT32_MAX, "Seed of the random numbers")
      ->default_str("1");
  app->add_option_function<std::string>(
         "--zipf", [args](const std::string& text) { set_zipf(args->synth.zipf, text); },
         "Prefer some experts: the share of tokens that choose the r-th most popular is as r^-S; default: 0, all alike")
      ->type_name("S");
  add_integer(*app, "--threads", args->threads, 1, 1024,
              "Worker threads; default: up to 4 of the processors that this process may use");
  app->add_flag("--force", args->force, "Replace a file that is there");
  app->add_flag("--list", args->list, "Print the shapes with their parameters, size and type, and the types");
  return {app, [args] { return run(*args); }};
}

}  // namespace stoker::cli
