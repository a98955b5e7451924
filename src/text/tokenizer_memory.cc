#include <algorithm>
#include <bit>

#include "gguf/file.h"
#include "text/tokenizer.h"

namespace stoker::text {
namespace {

struct Strings {
  uint64_t count = 0, bytes = 0;
};

Strings strings_of(const gguf::File& file, std::string_view key) {
  auto array = file.array(key);
  if (!array || *array == nullptr) return {};
  Strings out{.count = (*array)->strings.size()};
  for (const std::string& text : (*array)->strings) out.bytes += text.size();
  return out;
}

/// A hash table that is at most three quarters full, 16 bytes a place.
uint64_t table_bytes(uint64_t count) { return 16 * std::bit_ceil(std::max<uint64_t>(2, count + count / 3 + 1)); }

}  // namespace

uint64_t Tokenizer::memory_bytes(const gguf::File& file) {
  constexpr uint64_t kFixed = 256u << 10;
  // Of each token: its kind in file and vocabulary, its score's rank with the sorted scores behind it, whether it ends
  // a text, is reachable, is whole.
  constexpr uint64_t kPerToken = 16;
  const Strings tokens = strings_of(file, "tokenizer.ggml.tokens"), merges = strings_of(file, "tokenizer.ggml.merges");
  if (tokens.count == 0) return 0;
  // Of unigram vocabularies the ids are sorted by text, in place of a table.
  auto charsmap = file.array("tokenizer.ggml.precompiled_charsmap");
  const uint64_t map = charsmap && *charsmap != nullptr ? (*charsmap)->size() : 0;
  auto model = file.string("tokenizer.ggml.model");
  const bool unigram = model && *model == "t5";
  const uint64_t lookup = unigram ? sizeof(TokenId) * tokens.count + map : table_bytes(tokens.count);
  // The texts as stored and as decoded, each with its end. Texts that only merges name are added to one of the two,
  // which doubles then.
  const uint64_t texts = 3 * (tokens.bytes + tokens.count * sizeof(size_t));
  return kFixed + texts + kPerToken * tokens.count + lookup + (merges.count > 0 ? table_bytes(merges.count) : 0);
}

}  // namespace stoker::text
