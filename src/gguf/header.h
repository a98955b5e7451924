#pragma once

#include "base/result.h"
#include "gguf/directory.h"
#include "gguf/file.h"
#include "gguf/metadata.h"
#include "gguf/source.h"

namespace stoker::gguf {

/// Everything that one file says before its data, checked.
struct Header {
  uint32_t version = 0;
  bool big_endian = false;
  Metadata metadata;
  Directory directory;
  uint64_t kept_bytes = 0;  ///< What the above takes in memory.
};

/// kCorrupt, kUnsupported: name the file, the field and the byte.
Result<Header> read_header(const Source& source, File::Options options);

}  // namespace stoker::gguf
