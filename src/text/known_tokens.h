#pragma once

#include "text/vocab.h"

namespace stoker::text {

/// Finds the tokens that are known by their text (docs/tokenizers.md#end): those that end a turn or a generation, those
/// for filling in. Sets roles, `ends` and, where files have them wrong, kinds. Needs `pieces` and `kinds`.
void correct_known_tokens(const Source& source, Vocab& vocab);

}  // namespace stoker::text
