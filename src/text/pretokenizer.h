#pragma once

#include <span>
#include <string_view>

#include "text/pattern.h"

namespace stoker::text {

/// How a byte-level BPE vocabulary named by `tokenizer.ggml.pre` cuts its text, and what else hangs on that name.
struct Pretokenizer {
  std::string_view name;
  std::span<const Pass> passes;
  bool ignore_merges = false;   ///< A whole piece that is a token is that token, whatever the merges say.
  bool add_bos = false;         ///< Unless the file says otherwise.
  bool plain_utf8 = false;      ///< Pieces are UTF-8 with U+2581 for the space (as Gemma 4 does), not mapped bytes.
  bool whole_newlines = false;  ///< A run of newlines that is a token is that token.
  bool drop_space = false;      ///< White space is not encoded at all; the rest is UTF-8 as it stands.
  bool force_bos = false;       ///< Whatever the file says.
  bool add_separator = false;   ///< Between two texts, unless the file says otherwise.
  bool no_default_bos = false;  ///< Without a key there is no BOS, rather than id 11.
};

/// The one of that name, null when there is none.
const Pretokenizer* find_pretokenizer(std::string_view name);

/// All of them, for tests and for messages.
std::span<const Pretokenizer> all_pretokenizers();

}  // namespace stoker::text
