#include "base/str_cat.h"

namespace stoker {

std::string quoted(std::string_view text, size_t max) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (char c : text.substr(0, max)) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  out += text.size() > max ? "...'" : "'";
  return out;
}

}  // namespace stoker
