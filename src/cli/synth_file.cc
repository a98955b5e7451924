#include "cli/synth_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>

#include "base/log.h"
#include "base/memory_limit.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/common.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kScheme = "synth:";
constexpr int kThreads = 4;  // each makes several gigabytes a second: more than a disk takes

}  // namespace

Result<std::string> synth_path(const engine::Synth& synth) {
  const std::string home = home_folder();
  if (home.empty()) return Error{ErrorCode::kIo, "neither STOKER_HOME nor HOME is set: say where with -o FILE"};
  return str_cat(home, "/synth/", synth.name(), ".gguf");
}

Status write_synth(const engine::Synth& synth, const std::string& path, int threads) {
  watch_signals();
  Ledger ledger(engine::default_memory_limit());
  STOKER_TRY(const Charge process, ledger.charge("process", Ledger::kProcessBytes));
  STOKER_TRY(const auto pool, Pool::create({.n_threads = threads == 0 ? std::min(usable_cpus(), kThreads) : threads}));
  Progress progress({.label = "writing", .total = synth.tensor_bytes()});
  return synth.write(
      path, *pool, ledger, [&](uint64_t bytes) { progress.add(bytes); }, &cancelled);
}

std::optional<engine::SynthOptions> synth_options(const std::string& model) {
  const bool is_named = model.starts_with(kScheme);
  const std::string name = is_named ? model.substr(kScheme.size()) : model;
  const size_t colon = std::min(name.find(':'), name.size());
  engine::SynthOptions options{.shape = name.substr(0, colon)};
  if (colon < name.size()) options.type = name.substr(colon + 1);
  if (!is_named && !engine::find_synth_shape(options.shape)) return std::nullopt;
  return options;
}

Result<std::string> model_file(const std::string& model) {
  if (!model.starts_with(kScheme)) return model;
  STOKER_TRY(const engine::Synth synth, engine::Synth::plan(*synth_options(model)));
  STOKER_TRY(std::string path, synth_path(synth));
  if (exists(path)) return path;
  std::fprintf(stderr, "stoker: writing %s of random weights: %s\n", format_bytes(synth.tensor_bytes()).c_str(),
               path.c_str());
  std::error_code ignored;  // then the file cannot be written either, which says why
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  STOKER_TRY_STATUS(write_synth(synth, path));
  return path;
}

Result<ModelHeader> synth_header(const engine::Synth& synth, std::string name) {
  ModelHeader header;
  STOKER_TRY(header.bytes, synth.header());
  STOKER_TRY(gguf::File file,
             gguf::File::parse(std::as_bytes(std::span(header.bytes)), std::move(name), {.header_only = true}));
  header.file = std::make_unique<gguf::File>(std::move(file));
  return header;
}

Result<ModelHeader> open_header(const std::string& model) {
  std::string path = model;
  if (model.starts_with(kScheme)) {
    STOKER_TRY(const engine::Synth synth, engine::Synth::plan(*synth_options(model)));
    STOKER_TRY(path, synth_path(synth));
    if (!exists(path)) return synth_header(synth, model);
  }
  STOKER_TRY(gguf::File file, gguf::File::open(path, {.allow_unknown_types = true}));
  return ModelHeader{.file = std::make_unique<gguf::File>(std::move(file))};
}

void warn_if_random(const gguf::File& file) {
  if (engine::is_synthetic(file))
    log_warn(file.path(), ": the weights are random (made by `stoker synth`): its text is noise");
}

}  // namespace stoker::cli
