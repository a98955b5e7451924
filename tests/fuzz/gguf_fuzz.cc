// Whatever the bytes, parsing them ends in an error or in a file all of which can be read.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "gguf/file.h"
#include "gguf/verify.h"

namespace {

using stoker::gguf::File;

void read_tensors(const File& file) {
  std::vector<std::byte> bytes;
  for (const auto& tensor : file.tensors()) {
    STOKER_CHECK(file.find_tensor(tensor.name) == &tensor);
    bytes.resize(tensor.bytes);
    const stoker::Status status = file.read_tensor(tensor, 0, bytes);
    // A listed type without big-endian form is the one thing that may stay unread.
    STOKER_CHECK(status || status.error().code == stoker::ErrorCode::kUnsupported);
    if (status) static_cast<void>(stoker::gguf::verify_tensor(tensor.type(), bytes));
    if (tensor.bytes > 2) static_cast<void>(file.read_tensor(tensor, 1, std::span(bytes).first(tensor.bytes - 2)));
  }
}

void look_up_keys(const File& file) {
  for (const auto& [key, value] : file.metadata()) {
    STOKER_CHECK(file.find(key) == &value);
    static_cast<void>(file.integer(key).has_value());
    static_cast<void>(file.real(key).has_value());
    static_cast<void>(file.boolean(key).has_value());
    static_cast<void>(file.string(key).has_value());
    static_cast<void>(file.array(key).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (bool allow_unknown_types : {false, true}) {
    const auto file = File::parse(std::as_bytes(std::span(data, size)), "input", {allow_unknown_types});
    if (!file) continue;
    read_tensors(*file);
    look_up_keys(*file);
  }
  return 0;
}
