#include "kernels/scalar/matmul.h"
#include "kernels/scalar/pack.h"
#include "kernels/tables_internal.h"
#include "quant/all.h"

namespace stoker::kernels::scalar {
namespace {

template <class Type>
void add(Table& table, MatmulFn matmul) {
  constexpr auto kId = static_cast<size_t>(Type::kType);
  table.matmul[kId] = {.one = matmul, .few = matmul, .many = matmul};
  table.matmul_isa[kId] = Isa::kScalar;
  table.pack[kId] = pack<Type>;
  table.row[kId] = row<Type>;
}

}  // namespace

void fill_matmul(Table& table) noexcept {
  add<quant::F32>(table, matmul_f<quant::F32>);
  add<quant::F16>(table, matmul_f<quant::F16>);
  add<quant::BF16>(table, matmul_f<quant::BF16>);
  quant::BlockQuants::any([&]<class Type>() { return add<Type>(table, matmul_b<Type>), false; });
  quant::SuperQuants::any([&]<class Type>() { return add<Type>(table, matmul_k<Type>), false; });
}

}  // namespace stoker::kernels::scalar
