#include "model/identity.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/xxh3.h"

namespace stoker::model {
namespace {

constexpr uint64_t kOfTensor = 4096;

class Identity {
 public:
  void add(int64_t number) { hash_.add(std::as_bytes(std::span(&number, 1))); }
  void add(double number) { hash_.add(std::as_bytes(std::span(&number, 1))); }
  void add(bool flag) { add(static_cast<int64_t>(flag)); }
  void add(std::string_view text) {
    add(static_cast<int64_t>(text.size()));  // so that "ab", "c" is not "a", "bc"
    hash_.add(std::as_bytes(std::span(text)));
  }
  void add(std::span<const std::byte> bytes) { hash_.add(bytes); }
  void add(const gguf::Array& array) {
    add(static_cast<int64_t>(array.size()));
    add(std::as_bytes(std::span(array.ints)));
    add(std::as_bytes(std::span(array.floats)));
    for (const std::string& text : array.strings) add(std::string_view(text));
  }
  uint64_t value() const { return hash_.value(); }

 private:
  Xxh3 hash_;
};

/// What a file calls itself, and how it is cut, says nothing about what it computes.
bool is_name(std::string_view key) {
  return key.starts_with("split.") || (key.starts_with("general.") && key != "general.architecture");
}

}  // namespace

Result<uint64_t> identity_of(const gguf::File& file, const Model& model) {
  Identity out;
  for (const auto& [key, value] : file.metadata()) {
    if (is_name(key)) continue;
    out.add(std::string_view(key));
    out.add(static_cast<int64_t>(value.data.index()));
    std::visit([&](const auto& data) { out.add(data); }, value.data);
  }
  std::vector<std::byte> head(kOfTensor);
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    out.add(std::string_view(tensor.name));
    out.add(static_cast<int64_t>(tensor.type_id));
    out.add(std::as_bytes(std::span(tensor.shape)));
    const auto bytes = std::span(head).first(std::min(tensor.bytes, kOfTensor));
    STOKER_TRY_STATUS(file.read_tensor(tensor, 0, bytes));
    out.add(bytes);
  }
  for (const auto& [key, value] : model.options().overrides) {
    out.add(std::string_view(key));
    out.add(std::string_view(value));
  }
  const ModelConfig& config = model.config();
  out.add(config.rope_scaling == RopeScaling::kLongRope && model.context() > config.rope_original_context);
  return out.value();
}

}  // namespace stoker::model
