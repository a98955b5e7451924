#pragma once

#include <string>

namespace stoker {

/// What errno `number` means, for an error message. Safe from any thread, unlike std::strerror.
std::string system_reason(int number);

}  // namespace stoker
