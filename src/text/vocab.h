#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "text/source.h"
#include "text/texts.h"

namespace stoker::text {

/// How the texts of normal tokens stand for bytes.
enum class TextForm : uint8_t {
  kMapped,  ///< Each byte is a printable character (byte_map.h).
  kBlanks,  ///< UTF-8 with U+2581 for the space, and <0xXX> tokens for bytes.
};

/// The tokens: their texts, their kinds after corrections, and those with a task.
struct Vocab {
  TextForm form;
  Texts pieces;  ///< As the file stores them.
  Texts bytes;   ///< What normal and byte tokens decode to.
  std::vector<TokenKind> kinds;
  std::array<TokenId, kRoles> roles;
  std::vector<bool> ends;       ///< Which tokens end a generation.
  std::vector<bool> reachable;  ///< Which tokens plain text can become: not control, unknown, byte or undefined ones.
  std::array<TokenId, 256> byte_tokens;  ///< kBlanks: the id of <0xXX>, kNoToken where there is none.
  std::vector<std::string> notes;

  size_t size() const { return kinds.size(); }
  TokenId role(Role role) const { return roles[static_cast<size_t>(role)]; }
  std::string_view decoded(TokenId id, bool show_special) const;
};

/// Texts, kinds and roles out of `source`. kCorrupt: a byte token that is not <0xXX>.
Result<Vocab> build_vocab(const Source& source, TextForm form);

/// The byte of a token text <0xXX>, two hexadecimal digits; -1 for any other text.
int byte_of_token(std::string_view text);

/// Replaces every U+2581 by a space, and the other way round.
void append_blanks_as_spaces(std::string& out, std::string_view text);
void append_spaces_as_blanks(std::string& out, std::string_view text);
constexpr std::string_view kBlankSign = "\xE2\x96\x81";

}  // namespace stoker::text
