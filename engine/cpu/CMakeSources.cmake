# The CPU's kernels: sources, flags by instruction set, oneDNN.
# Sets TAC_ENGINE_CPU_SOURCES and TAC_ENGINE_CPU_LIBS for engine/CMakeLists.txt.

set(TAC_ENGINE_CPU_SOURCES
    cpu/cast.c
    cpu/cast_stochastic.c
    cpu/adafactor.c
    cpu/device_cpu.c
    cpu/half/half_bf16.c
    cpu/half/half_f16.c
    cpu/half/state.c
    cpu/kernel_sets.c
    cpu/ref/ref_adamw8bit.c
    cpu/simd/quant_table.c
    cpu/ref/ref_f32.c
    cpu/ref/ref_f64.c
    cpu/ref/ref_set.c
    cpu/avx2/avx2.c
    cpu/avx512/avx512.c
    cpu/avx512/conv_entries.c
    cpu/avx512/small_conv.c
    cpu/onednn/set.c)
set(TAC_ENGINE_CPU_LIBS)

if(TAC_HAVE_ONEDNN)
    list(APPEND TAC_ENGINE_CPU_SOURCES
        cpu/onednn/api.c
        cpu/onednn/api_matmul.c
        cpu/onednn/cache.c
        cpu/onednn/conv_chunk.c
        cpu/onednn/conv_entries.c
        cpu/onednn/conv_plan.c
        cpu/onednn/conv_pool.c
        cpu/onednn/conv_pool_slice.c
        cpu/onednn/conv_run.c
        cpu/onednn/linear.c
        cpu/onednn/matmul_plan.c
        cpu/onednn/matmul_run.c
        cpu/onednn/omp.c)
    list(APPEND TAC_ENGINE_CPU_LIBS DNNL::dnnl ${CMAKE_DL_LIBS})
    set_source_files_properties(cpu/onednn/set.c PROPERTIES
        COMPILE_DEFINITIONS TAC_HAVE_ONEDNN)
endif()

# On other processors these files are empty and the reference serves.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    tac_isa_flags(SOURCES cpu/avx2/avx2.c FLAGS -mavx2 -mfma -mf16c)
    tac_isa_flags(SOURCES cpu/avx512/avx512.c cpu/avx512/small_conv.c
                  FLAGS -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl
                        -mavx512dq)
endif()
