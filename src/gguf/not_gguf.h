#pragma once

#include <span>
#include <string>

namespace stoker::gguf {

/// For a file that does not begin with "GGUF": what its first bytes look like instead, and what to do.
std::string describe_not_gguf(std::span<const std::byte> first);

}  // namespace stoker::gguf
