#include "base/system_error.h"

#include <system_error>

namespace stoker {

std::string system_reason(int number) { return std::generic_category().message(number); }

}  // namespace stoker
