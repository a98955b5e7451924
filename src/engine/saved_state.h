#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/output_file.h"
#include "base/result.h"
#include "engine/engine.h"
#include "model/state/state_file.h"

namespace stoker::engine {

/// Of the engine's model. Reads some MiB of the file. kIo, kCorrupt: name the tensor.
Result<model::StateOwner> state_owner(const Engine& engine);

/// A state that this engine can go on from: StateFile::open. May be asked before Engine::load.
Result<model::StateFile> open_state(const Engine& engine, const std::string& path);

/// Writes and commits the state of a sequence that has read some of `tokens`, from the first one on. Where that was all
/// of them the sequence is cut first, so that who reads it back has a token left to read.
Status save_state(const Engine& engine, model::Sequence& sequence, std::span<const int32_t> tokens, OutputFile& file);

}  // namespace stoker::engine
