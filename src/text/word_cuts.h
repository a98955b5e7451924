#pragma once

#include <array>
#include <string_view>

#include "text/vocab.h"

namespace stoker::text {

/// Where a text with U+2581 for the space can be cut without changing what becomes of it: before a U+2581, where no
/// token has one behind the byte that stands there. Any merge over the cut would be such a token.
class WordCuts {
 public:
  /// Takes note of a text that symbols can become.
  void learn(std::string_view text) {
    for (size_t pos = 1; (pos = text.find(kBlankSign, pos)) != std::string_view::npos; ++pos)
      joined_[static_cast<uint8_t>(text[pos - 1])] = true;
  }
  /// The first cut behind `pos`, or the end.
  size_t next(std::string_view text, size_t pos) const {
    while ((pos = text.find(kBlankSign, pos + 1)) != std::string_view::npos)
      if (!joined_[static_cast<uint8_t>(text[pos - 1])]) return pos;
    return text.size();
  }

 private:
  std::array<bool, 256> joined_{};
};

}  // namespace stoker::text
