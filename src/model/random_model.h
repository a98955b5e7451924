#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/config.h"

namespace stoker::model {

/// The bytes of a GGUF file with the shape of `config` but `n_layers` layers and `vocab` tokens, F32 weights drawn from
/// `seed`. Has every tensor that the architecture requires and no tokenizer. kInvalidArgument: a shape that cannot be.
Result<std::string> random_model(ModelConfig config, int64_t n_layers, int64_t vocab, uint64_t seed);

}  // namespace stoker::model
