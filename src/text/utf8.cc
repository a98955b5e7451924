#include "text/utf8.h"

#include "text/tokenizer.h"

namespace stoker::text {
namespace {

constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD";

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

// What the first byte promises: the size, and the range of the second byte, narrower than 80..BF where that keeps out
// overlong forms (E0, F0), surrogates (ED) and what lies above U+10FFFF (F4). Table 3-7 of the Unicode Standard.
struct Lead {
  uint32_t size;
  uint8_t low, high;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) return {3, uint8_t(byte == 0xE0 ? 0xA0 : 0x80), uint8_t(byte == 0xED ? 0x9F : 0xBF)};
  if (byte < 0xF5) return {4, uint8_t(byte == 0xF0 ? 0x90 : 0x80), uint8_t(byte == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

}  // namespace

Utf8Prefix utf8_prefix(std::string_view text) {
  Lead lead = lead_of(byte_at(text, 0));
  if (lead.size <= 1) return {1, lead.size == 1, false};
  for (uint32_t i = 1; i < lead.size; ++i) {
    if (i == text.size()) return {i, false, true};
    uint8_t byte = byte_at(text, i);
    if (byte < (i == 1 ? lead.low : 0x80) || byte > (i == 1 ? lead.high : 0xBF)) return {i, false, false};
  }
  return {lead.size, true, false};
}

Utf8Char decode_utf8(std::string_view text) {
  Utf8Prefix prefix = utf8_prefix(text);
  if (!prefix.complete) return {kReplacement, 1, false};
  if (prefix.size == 1) return {byte_at(text, 0), 1, true};
  uint32_t code = byte_at(text, 0) & (0x7Fu >> prefix.size);
  for (uint32_t i = 1; i < prefix.size; ++i) code = code << 6 | (byte_at(text, i) & 0x3Fu);
  return {code, prefix.size, true};
}

void append_utf8(std::string& out, uint32_t code) {
  auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xE0 | code >> 12);
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
    }
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

std::string Utf8Stream::push(std::string_view bytes) {
  std::string joined;
  if (!held_.empty()) {
    joined = std::move(held_);
    joined += bytes;
    bytes = joined;
    held_.clear();
  }
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    Utf8Prefix prefix = utf8_prefix(bytes);
    if (prefix.could_extend) {
      held_ = bytes;
      break;
    }
    out += prefix.complete ? bytes.substr(0, prefix.size) : kReplacementBytes;
    bytes.remove_prefix(prefix.size);
  }
  return out;
}

std::string Utf8Stream::finish() {
  if (held_.empty()) return {};
  held_.clear();
  return std::string(kReplacementBytes);
}

}  // namespace stoker::text
