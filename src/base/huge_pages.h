#pragma once

#include <string>

namespace stoker {

/// Why buffers will not lie in huge pages, though they ask for them: a system without, a setting, or this process is
/// denied them. Empty where they will, as long as memory has any. Reads sys/kernel/mm below `root` ("" for the real
/// one).
std::string huge_pages_refusal(const std::string& root = "");

}  // namespace stoker
