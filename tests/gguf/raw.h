#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/str_cat.h"
#include "gguf/byte_order.h"
#include "gguf/file.h"
#include "gguf/value.h"

namespace stoker::gguf {

/// Spells a GGUF file field by field, so that each can be wrong.
class Raw {
 public:
  explicit Raw(bool big_endian = false) : big_endian_(big_endian) {}

  template <class T>
  Raw& number(T value) {
    std::byte bytes[sizeof(T)];
    store(value, big_endian_, bytes);
    out_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
    return *this;
  }
  Raw& u8(uint8_t v) { return number(v); }
  Raw& u16(uint16_t v) { return number(v); }
  Raw& u32(uint32_t v) { return number(v); }
  Raw& u64(uint64_t v) { return number(v); }
  Raw& raw(std::string_view bytes) {
    out_ += bytes;
    return *this;
  }
  Raw& text(std::string_view text) { return u64(text.size()).raw(text); }
  Raw& header(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
    return raw("GGUF").u32(version).u64(n_tensors).u64(n_keys);
  }
  /// A key and its type; the value follows.
  Raw& key(std::string_view name, ValueType type) { return text(name).u32(static_cast<uint32_t>(type)); }
  Raw& u32_key(std::string_view name, uint32_t value) { return key(name, ValueType::kU32).u32(value); }
  /// Dimensions in the order of the file.
  Raw& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset) {
    text(name).u32(static_cast<uint32_t>(dims.size()));
    for (uint64_t dim : dims) u64(dim);
    return u32(type).u64(offset);
  }
  Raw& pad(size_t alignment = 32) {
    while (out_.size() % alignment != 0) out_ += '\0';
    return *this;
  }
  Raw& zeros(size_t n) {
    out_.append(n, '\0');
    return *this;
  }
  size_t size() const { return out_.size(); }
  const std::string& bytes() const { return out_; }

 private:
  bool big_endian_;
  std::string out_;
};

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline Result<File> parse(std::string_view bytes, File::Options options = {}) {
  return File::parse(as_bytes(bytes), "test.gguf", options);
}

/// That `bytes` are refused with `code` and a message of one line that has all of `words` in it.
inline void expect_refused(std::string_view bytes, ErrorCode code, std::initializer_list<std::string_view> words) {
  const Result<File> file = parse(bytes);
  ASSERT_FALSE(file) << "was accepted";
  const std::string& message = file.error().message;
  EXPECT_EQ(file.error().code, code) << message;
  EXPECT_EQ(message.rfind("test.gguf: ", 0), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (std::string_view word : words)
    EXPECT_NE(message.find(word), std::string::npos) << word << " not in: " << message;
}

}  // namespace stoker::gguf
