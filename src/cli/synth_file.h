// Models of random weights by name, in place of a file: -m synth:SHAPE[:TYPE].
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/synth.h"
#include "gguf/file.h"

namespace stoker::cli {

/// Where models of random weights are kept: ${STOKER_HOME:-~/.cache/stoker}/synth/NAME.gguf.
/// kIo: neither variable is set.
Result<std::string> synth_path(const engine::Synth& synth);

/// Writes it, with a progress bar on a terminal; Ctrl-C leaves nothing behind. `threads` 0: as many as help.
Status write_synth(const engine::Synth& synth, const std::string& path, int threads = 0);

/// What "synth:SHAPE[:TYPE]" asks for; SHAPE[:TYPE] alone, if there is such a shape. Nothing: it is something else.
std::optional<engine::SynthOptions> synth_options(const std::string& model);

/// `model` as it is, or the path of the file that "synth:SHAPE[:TYPE]" stands for, written first where it is not there.
Result<std::string> model_file(const std::string& model);

/// All that a model's file says of itself.
struct ModelHeader {
  std::string bytes{};  ///< Of a shape that has not been written; `file` then points into them.
  std::unique_ptr<gguf::File> file{};
};
/// Of `model`, a file or "synth:SHAPE[:TYPE]", for those who read no weights: of a shape that is not there yet the
/// header alone is made.
Result<ModelHeader> open_header(const std::string& model);
/// The same of a shape, `name` is what messages call it.
Result<ModelHeader> synth_header(const engine::Synth& synth, std::string name);

/// Says on stderr that an answer of this model means nothing, where its weights are random.
void warn_if_random(const gguf::File& file);

}  // namespace stoker::cli
