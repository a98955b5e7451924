#include "text/byte_map.h"

#include <array>

#include "text/utf8.h"

namespace stoker::text {
namespace {

constexpr uint32_t kFirstExtra = 0x100, kCodes = 0x144;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Maps {
  std::array<uint16_t, 256> to_char{};
  std::array<int16_t, kCodes> to_byte{};
};

constexpr Maps kMaps = [] {
  Maps maps;
  for (int16_t& byte : maps.to_byte) byte = -1;
  uint32_t extra = kFirstExtra;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t code = stands_for_itself(byte) ? byte : extra++;
    maps.to_char[byte] = static_cast<uint16_t>(code);
    maps.to_byte[code] = static_cast<int16_t>(byte);
  }
  return maps;
}();

}  // namespace

uint32_t char_of_byte(uint8_t byte) { return kMaps.to_char[byte]; }

int byte_of_char(uint32_t code) { return code < kCodes ? kMaps.to_byte[code] : -1; }

bool append_unmapped(std::string& out, std::string_view text) {
  bool all = true;
  for (size_t pos = 0; pos < text.size();) {
    uint8_t first = static_cast<uint8_t>(text[pos]);
    if (first > 0x20 && first < 0x7F) {
      out += text[pos++];
      continue;
    }
    // All characters that stand for a byte have two bytes at most: C2 to C5 and one more.
    unsigned second = pos + 1 < text.size() ? static_cast<uint8_t>(text[pos + 1]) : 0;
    bool two = first >= 0xC2 && first <= 0xC5 && (second & 0xC0) == 0x80;
    if (int byte = two ? byte_of_char((first & 31u) << 6 | (second & 63)) : -1; byte >= 0) {
      out += static_cast<char>(byte);
      pos += 2;
      continue;
    }
    Utf8Char c = decode_utf8(text.substr(pos));
    out += text.substr(pos, c.size);
    all = false;
    pos += c.size;
  }
  return all;
}

}  // namespace stoker::text
