#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/cursor.h"
#include "gguf/value.h"

namespace stoker::gguf {

using Metadata = std::vector<std::pair<std::string, Value>>;

/// Reads `count` keys with their values. kCorrupt, kUnsupported: name the key and the byte.
Result<Metadata> read_metadata(Cursor& cursor, uint64_t count);

/// A few dozen look-ups before there is an index; nullptr when absent.
const Value* find_value(const Metadata& metadata, std::string_view key);

}  // namespace stoker::gguf
