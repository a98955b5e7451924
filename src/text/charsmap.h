#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::text {

/// The normalisation table of a SentencePiece model (`precompiled_charsmap`): a double-array trie of what is replaced,
/// with offsets of the replacements. docs/tokenizers.md#charsmap has the layout.
class Charsmap {
 public:
  /// kCorrupt: the parts do not fit into the bytes. Without bytes nothing is replaced.
  static Result<Charsmap> parse(std::vector<uint8_t> bytes);

  /// The longest beginning of `text` (not empty) that is replaced: how many bytes, and by what; 0 bytes: none.
  struct Match {
    size_t size = 0;
    std::string_view replacement{};
  };
  Match longest(std::string_view text) const;

 private:
  uint32_t unit(size_t i) const {
    const uint8_t* at = bytes_.data() + kHeader + 4 * i;
    return static_cast<uint32_t>(at[0] | at[1] << 8 | at[2] << 16) | static_cast<uint32_t>(at[3]) << 24;
  }
  static constexpr size_t kHeader = 4;
  std::vector<uint8_t> bytes_;
  size_t n_units_ = 0;
  std::string_view replacements_;  // Of bytes_, whose memory a move keeps.
};

}  // namespace stoker::text
