#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace stoker {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "stoker: internal error: %s failed at %s:%d; please report it\n", condition, file, line);
  std::abort();
}

}  // namespace stoker
