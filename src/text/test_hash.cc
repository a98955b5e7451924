#include "text/algorithm.h"

namespace stoker::text {
namespace {

class TestHash final : public Algorithm {
 public:
  explicit TestHash(size_t n_tokens) : n_tokens_(static_cast<uint32_t>(n_tokens)) {}
  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    for (; !text.empty(); text.remove_prefix(std::min<size_t>(text.size(), 5))) {
      uint32_t hash = 0;
      for (char c : text.substr(0, 5)) hash = hash * 31 + static_cast<uint8_t>(c);
      out.push_back(static_cast<TokenId>(hash % n_tokens_));
    }
  }

 private:
  uint32_t n_tokens_;
};

}  // namespace

std::unique_ptr<Algorithm> make_test_hash(const Vocab& vocab) { return std::make_unique<TestHash>(vocab.size()); }

}  // namespace stoker::text
