#include "text/char_class.h"

#include <algorithm>

namespace stoker::text {

bool CharClass::inside(std::span<const CodeRange> ranges, uint32_t code) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                [](uint32_t c, const CodeRange& range) { return c < range.first; });
  return after != ranges.begin() && code <= after[-1].last;
}

}  // namespace stoker::text
