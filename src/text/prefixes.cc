#include "text/prefixes.h"

namespace stoker::text {

size_t Prefixes::build(const Texts& texts, const std::vector<bool>& wanted) {
  const auto n_wanted = static_cast<size_t>(std::count(wanted.begin(), wanted.end(), true));
  sorted_.reserve(n_wanted);
  for (size_t id = 0; id < wanted.size(); ++id)
    if (wanted[id]) sorted_.push_back(static_cast<TokenId>(id));
  const auto text_of = [&](TokenId id) { return texts[static_cast<size_t>(id)]; };
  std::sort(sorted_.begin(), sorted_.end(), [&](TokenId a, TokenId b) {
    const int order = text_of(a).compare(text_of(b));
    return order != 0 ? order < 0 : a > b;
  });
  const auto same = [&](TokenId a, TokenId b) { return text_of(a) == text_of(b); };
  sorted_.erase(std::unique(sorted_.begin(), sorted_.end(), same), sorted_.end());
  for (const TokenId id : sorted_) ++first_[static_cast<uint8_t>(text_of(id)[0]) + 1u];
  for (size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
  return n_wanted - sorted_.size();
}

}  // namespace stoker::text
