#include "model/embedding_reader.h"

#include "quant/all.h"

namespace stoker::model {

Status EmbeddingReader::read(int64_t row, std::span<std::byte> window, std::span<float> out) const {
  STOKER_TRY(const std::span<std::byte> bytes,
             reader_.read(tensor_, static_cast<uint64_t>(row) * row_bytes(), row_bytes(), window));
  return quant::dequantize_row(tensor_.type(), bytes, static_cast<int64_t>(out.size()), out.data());
}

}  // namespace stoker::model
