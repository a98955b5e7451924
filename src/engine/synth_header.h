// Metadata of a model of random weights.
#pragma once

#include "engine/synth.h"
#include "gguf/writer.h"

namespace stoker::engine {

/// Says that weights are random; anyone may look for it.
inline constexpr const char* kSynthKey = "stoker.synthetic";

/// The keys that the family reads.
void add_synth_keys(gguf::Writer& writer, const SynthShape& shape, int64_t n_layers);
/// A byte-level vocabulary of the full size: a token for every byte, some merges, placeholders. The last ends a text.
void add_synth_vocabulary(gguf::Writer& writer, const SynthShape& shape);
/// About what a Writer takes for it, with the header made of it.
uint64_t synth_vocabulary_bytes(const SynthShape& shape);

}  // namespace stoker::engine
