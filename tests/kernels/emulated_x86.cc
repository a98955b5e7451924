#include <algorithm>

#include "base/cpu.h"
#include "tests/kernels/emulated.h"

// What tests/kernels/CMakeLists.txt builds from src/kernels/{avxvnni,amx}, with the namespaces renamed.
namespace stoker::kernels::avxvnni_emulated {
void fill_matmul(Table& table) noexcept;
}  // namespace stoker::kernels::avxvnni_emulated
namespace stoker::kernels::amx_emulated {
void fill_matmul(Table& table) noexcept;
}  // namespace stoker::kernels::amx_emulated

namespace stoker::testing {

std::vector<const kernels::Table*> emulated_tables() {
  const std::vector<Isa>& isas = available_isas();
  if (std::find(isas.begin(), isas.end(), Isa::kAvx512) == isas.end()) return {};
  static const kernels::Table avxvnni = [] {
    kernels::Table table = **kernels::table_for(Isa::kAvx2);
    kernels::avxvnni_emulated::fill_matmul(table);
    table.isa = Isa::kAvxVnni;
    return table;
  }();
  static const kernels::Table amx = [] {
    kernels::Table table = **kernels::table_for(Isa::kAvx512);
    kernels::amx_emulated::fill_matmul(table);
    table.isa = Isa::kAmx;
    return table;
  }();
  return {&avxvnni, &amx};
}

}  // namespace stoker::testing
