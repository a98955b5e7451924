#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "text/source.h"
#include "text/texts.h"

namespace stoker::text {

/// Tokens sorted by their texts, for all of them that a text begins with.
class Prefixes {
 public:
  /// Those that `wanted` has; of equal texts the highest id. How many others have the same.
  size_t build(const Texts& texts, const std::vector<bool>& wanted);

  /// f(id, size) for each token at the start of `text`, the shortest first.
  template <class F>
  void each(const Texts& texts, std::string_view text, F f) const {
    if (text.empty()) return;
    const auto byte = static_cast<uint8_t>(text[0]);
    const TokenId *begin = sorted_.data() + first_[byte], *end = sorted_.data() + first_[byte + 1u];
    // All in [begin, end) start with the first `size` bytes of the text; the shortest of these comes first.
    for (size_t size = 1; begin != end; ++size) {
      if (texts[static_cast<size_t>(*begin)].size() == size) f(*begin++, size);
      if (size == text.size()) return;
      const auto below = [&](TokenId id, uint8_t limit) { return byte_at(texts, id, size) < limit; };
      const auto next = static_cast<uint8_t>(text[size]);
      begin = std::lower_bound(begin, end, next, below);
      end = std::upper_bound(begin, end, next,
                             [&](uint8_t limit, TokenId id) { return limit < byte_at(texts, id, size); });
    }
  }

 private:
  static uint8_t byte_at(const Texts& texts, TokenId id, size_t at) {
    return static_cast<uint8_t>(texts[static_cast<size_t>(id)][at]);
  }
  std::vector<TokenId> sorted_;
  std::array<uint32_t, 257> first_{};  // Of the tokens that start with a byte.
};

}  // namespace stoker::text
