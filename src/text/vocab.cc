#include "text/vocab.h"

#include "base/str_cat.h"
#include "text/byte_map.h"
#include "text/known_tokens.h"

namespace stoker::text {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

void add_texts(const Source& source, Vocab& out) {
  size_t total = 0;
  for (const std::string& token : source.tokens) total += token.size();
  out.pieces.reserve(source.tokens.size(), total + 64);
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    if (source.tokens[id].empty()) {
      out.pieces.add(str_cat("[EMPTY_", id, "]"));
    } else {
      out.pieces.add(source.tokens[id]);
    }
  }
}

bool plain_kind(TokenKind kind) {
  return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined || kind == TokenKind::kUnused;
}

Status add_bytes(Vocab& out) {
  out.byte_tokens.fill(kNoToken);
  out.reachable.assign(out.size(), false);
  out.bytes.reserve(out.size(), 0);
  std::string text;
  for (size_t id = 0; id < out.size(); ++id) {
    std::string_view piece = out.pieces[id];
    bool all_mapped = true;
    text.clear();
    int byte = byte_of_token(piece);
    if (out.kinds[id] == TokenKind::kByte && byte < 0)
      return Error{ErrorCode::kCorrupt, str_cat("tokenizer.ggml.tokens: token ", id, " is of type byte and its text ",
                                                quoted(piece), " is not <0xXX> with two hexadecimal digits")};
    // A file without token types has its byte tokens as normal ones.
    bool is_byte = byte >= 0 && out.form == TextForm::kBlanks && out.kinds[id] == TokenKind::kNormal;
    if (is_byte) out.kinds[id] = TokenKind::kByte;
    if (out.kinds[id] == TokenKind::kByte) {
      text += static_cast<char>(byte);
      out.byte_tokens[static_cast<size_t>(byte)] = static_cast<TokenId>(id);
    } else if (out.form == TextForm::kMapped) {
      all_mapped = append_unmapped(text, piece);
    } else {
      append_blanks_as_spaces(text, piece);
    }
    out.bytes.add(text);
    out.reachable[id] = all_mapped && plain_kind(out.kinds[id]);
  }
  return Ok{};
}

}  // namespace

int byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int high = hex_digit(text[3]), low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void append_blanks_as_spaces(std::string& out, std::string_view text) {
  for (size_t pos; (pos = text.find(kBlankSign)) != std::string_view::npos;
       text.remove_prefix(pos + kBlankSign.size())) {
    out += text.substr(0, pos);
    out += ' ';
  }
  out += text;
}

void append_spaces_as_blanks(std::string& out, std::string_view text) {
  for (size_t pos; (pos = text.find(' ')) != std::string_view::npos; text.remove_prefix(pos + 1)) {
    out += text.substr(0, pos);
    out += kBlankSign;
  }
  out += text;
}

std::string_view Vocab::decoded(TokenId id, bool show_special) const {
  if (id < 0 || static_cast<size_t>(id) >= size()) return {};
  size_t i = static_cast<size_t>(id);
  switch (kinds[i]) {
    case TokenKind::kNormal:
    case TokenKind::kByte:
      return bytes[i];
    case TokenKind::kUserDefined:
      return pieces[i];
    case TokenKind::kControl:
    case TokenKind::kUnknown:
      return show_special ? pieces[i] : std::string_view();
    case TokenKind::kUnused:
    case TokenKind::kUndefined:
      break;
  }
  return {};
}

Result<Vocab> build_vocab(const Source& source, TextForm form) {
  Vocab out;
  out.form = form;
  out.kinds = source.kinds;
  out.notes = source.notes;
  add_texts(source, out);
  correct_known_tokens(source, out);
  STOKER_TRY_STATUS(add_bytes(out));
  return out;
}

}  // namespace stoker::text
