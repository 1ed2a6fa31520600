import type * as runtime from "@prisma/client/runtime/client";
import type * as Prisma from "../internal/prismaNamespace.js";
export type EffectModel = runtime.Types.Result.DefaultSelection<Prisma.$EffectPayload>;
export type AggregateEffect = {
    _count: EffectCountAggregateOutputType | null;
    _avg: EffectAvgAggregateOutputType | null;
    _sum: EffectSumAggregateOutputType | null;
    _min: EffectMinAggregateOutputType | null;
    _max: EffectMaxAggregateOutputType | null;
};
export type EffectAvgAggregateOutputType = {
    n: number | null;
    seq: number | null;
    attempt: number | null;
    pid: number | null;
};
export type EffectSumAggregateOutputType = {
    n: bigint | null;
    seq: number | null;
    attempt: number | null;
    pid: number | null;
};
export type EffectMinAggregateOutputType = {
    n: bigint | null;
    consumer: string | null;
    key: string | null;
    id: string | null;
    seq: number | null;
    attempt: number | null;
    pid: number | null;
};
export type EffectMaxAggregateOutputType = {
    n: bigint | null;
    consumer: string | null;
    key: string | null;
    id: string | null;
    seq: number | null;
    attempt: number | null;
    pid: number | null;
};
export type EffectCountAggregateOutputType = {
    n: number;
    consumer: number;
    key: number;
    id: number;
    seq: number;
    attempt: number;
    pid: number;
    _all: number;
};
export type EffectAvgAggregateInputType = {
    n?: true;
    seq?: true;
    attempt?: true;
    pid?: true;
};
export type EffectSumAggregateInputType = {
    n?: true;
    seq?: true;
    attempt?: true;
    pid?: true;
};
export type EffectMinAggregateInputType = {
    n?: true;
    consumer?: true;
    key?: true;
    id?: true;
    seq?: true;
    attempt?: true;
    pid?: true;
};
export type EffectMaxAggregateInputType = {
    n?: true;
    consumer?: true;
    key?: true;
    id?: true;
    seq?: true;
    attempt?: true;
    pid?: true;
};
export type EffectCountAggregateInputType = {
    n?: true;
    consumer?: true;
    key?: true;
    id?: true;
    seq?: true;
    attempt?: true;
    pid?: true;
    _all?: true;
};
export type EffectAggregateArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    where?: Prisma.EffectWhereInput;
    orderBy?: Prisma.EffectOrderByWithRelationInput | Prisma.EffectOrderByWithRelationInput[];
    cursor?: Prisma.EffectWhereUniqueInput;
    take?: number;
    skip?: number;
    _count?: true | EffectCountAggregateInputType;
    _avg?: EffectAvgAggregateInputType;
    _sum?: EffectSumAggregateInputType;
    _min?: EffectMinAggregateInputType;
    _max?: EffectMaxAggregateInputType;
};
export type GetEffectAggregateType<T extends EffectAggregateArgs> = {
    [P in keyof T & keyof AggregateEffect]: P extends '_count' | 'count' ? T[P] extends true ? number : Prisma.GetScalarType<T[P], AggregateEffect[P]> : Prisma.GetScalarType<T[P], AggregateEffect[P]>;
};
export type EffectGroupByArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    where?: Prisma.EffectWhereInput;
    orderBy?: Prisma.EffectOrderByWithAggregationInput | Prisma.EffectOrderByWithAggregationInput[];
    by: Prisma.EffectScalarFieldEnum[] | Prisma.EffectScalarFieldEnum;
    having?: Prisma.EffectScalarWhereWithAggregatesInput;
    take?: number;
    skip?: number;
    _count?: EffectCountAggregateInputType | true;
    _avg?: EffectAvgAggregateInputType;
    _sum?: EffectSumAggregateInputType;
    _min?: EffectMinAggregateInputType;
    _max?: EffectMaxAggregateInputType;
};
export type EffectGroupByOutputType = {
    n: bigint;
    consumer: string | null;
    key: string | null;
    id: string;
    seq: number | null;
    attempt: number;
    pid: number;
    _count: EffectCountAggregateOutputType | null;
    _avg: EffectAvgAggregateOutputType | null;
    _sum: EffectSumAggregateOutputType | null;
    _min: EffectMinAggregateOutputType | null;
    _max: EffectMaxAggregateOutputType | null;
};
export type GetEffectGroupByPayload<T extends EffectGroupByArgs> = Prisma.PrismaPromise<Array<Prisma.PickEnumerable<EffectGroupByOutputType, T['by']> & {
    [P in ((keyof T) & (keyof EffectGroupByOutputType))]: P extends '_count' ? T[P] extends boolean ? number : Prisma.GetScalarType<T[P], EffectGroupByOutputType[P]> : Prisma.GetScalarType<T[P], EffectGroupByOutputType[P]>;
}>>;
export type EffectWhereInput = {
    AND?: Prisma.EffectWhereInput | Prisma.EffectWhereInput[];
    OR?: Prisma.EffectWhereInput[];
    NOT?: Prisma.EffectWhereInput | Prisma.EffectWhereInput[];
    n?: Prisma.BigIntFilter<"Effect"> | bigint | number;
    consumer?: Prisma.StringNullableFilter<"Effect"> | string | null;
    key?: Prisma.StringNullableFilter<"Effect"> | string | null;
    id?: Prisma.StringFilter<"Effect"> | string;
    seq?: Prisma.IntNullableFilter<"Effect"> | number | null;
    attempt?: Prisma.IntFilter<"Effect"> | number;
    pid?: Prisma.IntFilter<"Effect"> | number;
};
export type EffectOrderByWithRelationInput = {
    n?: Prisma.SortOrder;
    consumer?: Prisma.SortOrderInput | Prisma.SortOrder;
    key?: Prisma.SortOrderInput | Prisma.SortOrder;
    id?: Prisma.SortOrder;
    seq?: Prisma.SortOrderInput | Prisma.SortOrder;
    attempt?: Prisma.SortOrder;
    pid?: Prisma.SortOrder;
};
export type EffectWhereUniqueInput = Prisma.AtLeast<{
    n?: bigint | number;
    AND?: Prisma.EffectWhereInput | Prisma.EffectWhereInput[];
    OR?: Prisma.EffectWhereInput[];
    NOT?: Prisma.EffectWhereInput | Prisma.EffectWhereInput[];
    consumer?: Prisma.StringNullableFilter<"Effect"> | string | null;
    key?: Prisma.StringNullableFilter<"Effect"> | string | null;
    id?: Prisma.StringFilter<"Effect"> | string;
    seq?: Prisma.IntNullableFilter<"Effect"> | number | null;
    attempt?: Prisma.IntFilter<"Effect"> | number;
    pid?: Prisma.IntFilter<"Effect"> | number;
}, "n">;
export type EffectOrderByWithAggregationInput = {
    n?: Prisma.SortOrder;
    consumer?: Prisma.SortOrderInput | Prisma.SortOrder;
    key?: Prisma.SortOrderInput | Prisma.SortOrder;
    id?: Prisma.SortOrder;
    seq?: Prisma.SortOrderInput | Prisma.SortOrder;
    attempt?: Prisma.SortOrder;
    pid?: Prisma.SortOrder;
    _count?: Prisma.EffectCountOrderByAggregateInput;
    _avg?: Prisma.EffectAvgOrderByAggregateInput;
    _max?: Prisma.EffectMaxOrderByAggregateInput;
    _min?: Prisma.EffectMinOrderByAggregateInput;
    _sum?: Prisma.EffectSumOrderByAggregateInput;
};
export type EffectScalarWhereWithAggregatesInput = {
    AND?: Prisma.EffectScalarWhereWithAggregatesInput | Prisma.EffectScalarWhereWithAggregatesInput[];
    OR?: Prisma.EffectScalarWhereWithAggregatesInput[];
    NOT?: Prisma.EffectScalarWhereWithAggregatesInput | Prisma.EffectScalarWhereWithAggregatesInput[];
    n?: Prisma.BigIntWithAggregatesFilter<"Effect"> | bigint | number;
    consumer?: Prisma.StringNullableWithAggregatesFilter<"Effect"> | string | null;
    key?: Prisma.StringNullableWithAggregatesFilter<"Effect"> | string | null;
    id?: Prisma.StringWithAggregatesFilter<"Effect"> | string;
    seq?: Prisma.IntNullableWithAggregatesFilter<"Effect"> | number | null;
    attempt?: Prisma.IntWithAggregatesFilter<"Effect"> | number;
    pid?: Prisma.IntWithAggregatesFilter<"Effect"> | number;
};
export type EffectCreateInput = {
    n?: bigint | number;
    consumer?: string | null;
    key?: string | null;
    id: string;
    seq?: number | null;
    attempt: number;
    pid: number;
};
export type EffectUncheckedCreateInput = {
    n?: bigint | number;
    consumer?: string | null;
    key?: string | null;
    id: string;
    seq?: number | null;
    attempt: number;
    pid: number;
};
export type EffectUpdateInput = {
    n?: Prisma.BigIntFieldUpdateOperationsInput | bigint | number;
    consumer?: Prisma.NullableStringFieldUpdateOperationsInput | string | null;
    key?: Prisma.NullableStringFieldUpdateOperationsInput | string | null;
    id?: Prisma.StringFieldUpdateOperationsInput | string;
    seq?: Prisma.NullableIntFieldUpdateOperationsInput | number | null;
    attempt?: Prisma.IntFieldUpdateOperationsInput | number;
    pid?: Prisma.IntFieldUpdateOperationsInput | number;
};
export type EffectUncheckedUpdateInput = {
    n?: Prisma.BigIntFieldUpdateOperationsInput | bigint | number;
    consumer?: Prisma.NullableStringFieldUpdateOperationsInput | string | null;
    key?: Prisma.NullableStringFieldUpdateOperationsInput | string | null;
    id?: Prisma.StringFieldUpdateOperationsInput | string;
    seq?: Prisma.NullableIntFieldUpdateOperationsInput | number | null;
    attempt?: Prisma.IntFieldUpdateOperationsInput | number;
    pid?: Prisma.IntFieldUpdateOperationsInput | number;
};
export type EffectCreateManyInput = {
    n?: bigint | number;
    consumer?: string | null;
    key?: string | null;
    id: string;
    seq?: number | null;
    attempt: number;
    pid: number;
};
export type EffectUpdateManyMutationInput = {
    n?: Prisma.BigIntFieldUpdateOperationsInput | bigint | number;
    consumer?: Prisma.NullableStringFieldUpdateOperationsInput | string | null;
    key?: Prisma.NullableStringFieldUpdateOperationsInput | string | null;
    id?: Prisma.StringFieldUpdateOperationsInput | string;
    seq?: Prisma.NullableIntFieldUpdateOperationsInput | number | null;
    attempt?: Prisma.IntFieldUpdateOperationsInput | number;
    pid?: Prisma.IntFieldUpdateOperationsInput | number;
};
export type EffectUncheckedUpdateManyInput = {
    n?: Prisma.BigIntFieldUpdateOperationsInput | bigint | number;
    consumer?: Prisma.NullableStringFieldUpdateOperationsInput | string | null;
    key?: Prisma.NullableStringFieldUpdateOperationsInput | string | null;
    id?: Prisma.StringFieldUpdateOperationsInput | string;
    seq?: Prisma.NullableIntFieldUpdateOperationsInput | number | null;
    attempt?: Prisma.IntFieldUpdateOperationsInput | number;
    pid?: Prisma.IntFieldUpdateOperationsInput | number;
};
export type EffectCountOrderByAggregateInput = {
    n?: Prisma.SortOrder;
    consumer?: Prisma.SortOrder;
    key?: Prisma.SortOrder;
    id?: Prisma.SortOrder;
    seq?: Prisma.SortOrder;
    attempt?: Prisma.SortOrder;
    pid?: Prisma.SortOrder;
};
export type EffectAvgOrderByAggregateInput = {
    n?: Prisma.SortOrder;
    seq?: Prisma.SortOrder;
    attempt?: Prisma.SortOrder;
    pid?: Prisma.SortOrder;
};
export type EffectMaxOrderByAggregateInput = {
    n?: Prisma.SortOrder;
    consumer?: Prisma.SortOrder;
    key?: Prisma.SortOrder;
    id?: Prisma.SortOrder;
    seq?: Prisma.SortOrder;
    attempt?: Prisma.SortOrder;
    pid?: Prisma.SortOrder;
};
export type EffectMinOrderByAggregateInput = {
    n?: Prisma.SortOrder;
    consumer?: Prisma.SortOrder;
    key?: Prisma.SortOrder;
    id?: Prisma.SortOrder;
    seq?: Prisma.SortOrder;
    attempt?: Prisma.SortOrder;
    pid?: Prisma.SortOrder;
};
export type EffectSumOrderByAggregateInput = {
    n?: Prisma.SortOrder;
    seq?: Prisma.SortOrder;
    attempt?: Prisma.SortOrder;
    pid?: Prisma.SortOrder;
};
export type BigIntFieldUpdateOperationsInput = {
    set?: bigint | number;
    increment?: bigint | number;
    decrement?: bigint | number;
    multiply?: bigint | number;
    divide?: bigint | number;
};
export type NullableStringFieldUpdateOperationsInput = {
    set?: string | null;
};
export type NullableIntFieldUpdateOperationsInput = {
    set?: number | null;
    increment?: number;
    decrement?: number;
    multiply?: number;
    divide?: number;
};
export type EffectSelect<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = runtime.Types.Extensions.GetSelect<{
    n?: boolean;
    consumer?: boolean;
    key?: boolean;
    id?: boolean;
    seq?: boolean;
    attempt?: boolean;
    pid?: boolean;
}, ExtArgs["result"]["effect"]>;
export type EffectSelectCreateManyAndReturn<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = runtime.Types.Extensions.GetSelect<{
    n?: boolean;
    consumer?: boolean;
    key?: boolean;
    id?: boolean;
    seq?: boolean;
    attempt?: boolean;
    pid?: boolean;
}, ExtArgs["result"]["effect"]>;
export type EffectSelectUpdateManyAndReturn<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = runtime.Types.Extensions.GetSelect<{
    n?: boolean;
    consumer?: boolean;
    key?: boolean;
    id?: boolean;
    seq?: boolean;
    attempt?: boolean;
    pid?: boolean;
}, ExtArgs["result"]["effect"]>;
export type EffectSelectScalar = {
    n?: boolean;
    consumer?: boolean;
    key?: boolean;
    id?: boolean;
    seq?: boolean;
    attempt?: boolean;
    pid?: boolean;
};
export type EffectOmit<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = runtime.Types.Extensions.GetOmit<"n" | "consumer" | "key" | "id" | "seq" | "attempt" | "pid", ExtArgs["result"]["effect"]>;
export type $EffectPayload<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    name: "Effect";
    objects: {};
    scalars: runtime.Types.Extensions.GetPayloadResult<{
        n: bigint;
        consumer: string | null;
        key: string | null;
        id: string;
        seq: number | null;
        attempt: number;
        pid: number;
    }, ExtArgs["result"]["effect"]>;
    composites: {};
};
export type EffectGetPayload<S extends boolean | null | undefined | EffectDefaultArgs> = runtime.Types.Result.GetResult<Prisma.$EffectPayload, S>;
export type EffectCountArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = Omit<EffectFindManyArgs, 'select' | 'include' | 'distinct' | 'omit'> & {
    select?: EffectCountAggregateInputType | true;
};
export interface EffectDelegate<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs, GlobalOmitOptions = {}> {
    [K: symbol]: {
        types: Prisma.TypeMap<ExtArgs>['model']['Effect'];
        meta: {
            name: 'Effect';
        };
    };
    findUnique<T extends EffectFindUniqueArgs>(args: Prisma.SelectSubset<T, EffectFindUniqueArgs<ExtArgs>>): Prisma.Prisma__EffectClient<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "findUnique", GlobalOmitOptions> | null, null, ExtArgs, GlobalOmitOptions>;
    findUniqueOrThrow<T extends EffectFindUniqueOrThrowArgs>(args: Prisma.SelectSubset<T, EffectFindUniqueOrThrowArgs<ExtArgs>>): Prisma.Prisma__EffectClient<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "findUniqueOrThrow", GlobalOmitOptions>, never, ExtArgs, GlobalOmitOptions>;
    findFirst<T extends EffectFindFirstArgs>(args?: Prisma.SelectSubset<T, EffectFindFirstArgs<ExtArgs>>): Prisma.Prisma__EffectClient<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "findFirst", GlobalOmitOptions> | null, null, ExtArgs, GlobalOmitOptions>;
    findFirstOrThrow<T extends EffectFindFirstOrThrowArgs>(args?: Prisma.SelectSubset<T, EffectFindFirstOrThrowArgs<ExtArgs>>): Prisma.Prisma__EffectClient<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "findFirstOrThrow", GlobalOmitOptions>, never, ExtArgs, GlobalOmitOptions>;
    findMany<T extends EffectFindManyArgs>(args?: Prisma.SelectSubset<T, EffectFindManyArgs<ExtArgs>>): Prisma.PrismaPromise<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "findMany", GlobalOmitOptions>>;
    create<T extends EffectCreateArgs>(args: Prisma.SelectSubset<T, EffectCreateArgs<ExtArgs>>): Prisma.Prisma__EffectClient<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "create", GlobalOmitOptions>, never, ExtArgs, GlobalOmitOptions>;
    createMany<T extends EffectCreateManyArgs>(args?: Prisma.SelectSubset<T, EffectCreateManyArgs<ExtArgs>>): Prisma.PrismaPromise<Prisma.BatchPayload>;
    createManyAndReturn<T extends EffectCreateManyAndReturnArgs>(args?: Prisma.SelectSubset<T, EffectCreateManyAndReturnArgs<ExtArgs>>): Prisma.PrismaPromise<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "createManyAndReturn", GlobalOmitOptions>>;
    delete<T extends EffectDeleteArgs>(args: Prisma.SelectSubset<T, EffectDeleteArgs<ExtArgs>>): Prisma.Prisma__EffectClient<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "delete", GlobalOmitOptions>, never, ExtArgs, GlobalOmitOptions>;
    update<T extends EffectUpdateArgs>(args: Prisma.SelectSubset<T, EffectUpdateArgs<ExtArgs>>): Prisma.Prisma__EffectClient<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "update", GlobalOmitOptions>, never, ExtArgs, GlobalOmitOptions>;
    deleteMany<T extends EffectDeleteManyArgs>(args?: Prisma.SelectSubset<T, EffectDeleteManyArgs<ExtArgs>>): Prisma.PrismaPromise<Prisma.BatchPayload>;
    updateMany<T extends EffectUpdateManyArgs>(args: Prisma.SelectSubset<T, EffectUpdateManyArgs<ExtArgs>>): Prisma.PrismaPromise<Prisma.BatchPayload>;
    updateManyAndReturn<T extends EffectUpdateManyAndReturnArgs>(args: Prisma.SelectSubset<T, EffectUpdateManyAndReturnArgs<ExtArgs>>): Prisma.PrismaPromise<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "updateManyAndReturn", GlobalOmitOptions>>;
    upsert<T extends EffectUpsertArgs>(args: Prisma.SelectSubset<T, EffectUpsertArgs<ExtArgs>>): Prisma.Prisma__EffectClient<runtime.Types.Result.GetResult<Prisma.$EffectPayload<ExtArgs>, T, "upsert", GlobalOmitOptions>, never, ExtArgs, GlobalOmitOptions>;
    count<T extends EffectCountArgs>(args?: Prisma.Subset<T, EffectCountArgs>): Prisma.PrismaPromise<T extends runtime.Types.Utils.Record<'select', any> ? T['select'] extends true ? number : Prisma.GetScalarType<T['select'], EffectCountAggregateOutputType> : number>;
    aggregate<T extends EffectAggregateArgs>(args: Prisma.Subset<T, EffectAggregateArgs>): Prisma.PrismaPromise<GetEffectAggregateType<T>>;
    groupBy<T extends EffectGroupByArgs, HasSelectOrTake extends Prisma.Or<Prisma.Extends<'skip', Prisma.Keys<T>>, Prisma.Extends<'take', Prisma.Keys<T>>>, OrderByArg extends Prisma.True extends HasSelectOrTake ? {
        orderBy: EffectGroupByArgs['orderBy'];
    } : {
        orderBy?: EffectGroupByArgs['orderBy'];
    }, OrderFields extends Prisma.ExcludeUnderscoreKeys<Prisma.Keys<Prisma.MaybeTupleToUnion<T['orderBy']>>>, ByFields extends Prisma.MaybeTupleToUnion<T['by']>, ByValid extends Prisma.Has<ByFields, OrderFields>, HavingFields extends Prisma.GetHavingFields<T['having']>, HavingValid extends Prisma.Has<ByFields, HavingFields>, ByEmpty extends T['by'] extends never[] ? Prisma.True : Prisma.False, InputErrors extends ByEmpty extends Prisma.True ? `Error: "by" must not be empty.` : HavingValid extends Prisma.False ? {
        [P in HavingFields]: P extends ByFields ? never : P extends string ? `Error: Field "${P}" used in "having" needs to be provided in "by".` : [
            Error,
            'Field ',
            P,
            ` in "having" needs to be provided in "by"`
        ];
    }[HavingFields] : 'take' extends Prisma.Keys<T> ? 'orderBy' extends Prisma.Keys<T> ? ByValid extends Prisma.True ? {} : {
        [P in OrderFields]: P extends ByFields ? never : `Error: Field "${P}" in "orderBy" needs to be provided in "by"`;
    }[OrderFields] : 'Error: If you provide "take", you also need to provide "orderBy"' : 'skip' extends Prisma.Keys<T> ? 'orderBy' extends Prisma.Keys<T> ? ByValid extends Prisma.True ? {} : {
        [P in OrderFields]: P extends ByFields ? never : `Error: Field "${P}" in "orderBy" needs to be provided in "by"`;
    }[OrderFields] : 'Error: If you provide "skip", you also need to provide "orderBy"' : ByValid extends Prisma.True ? {} : {
        [P in OrderFields]: P extends ByFields ? never : `Error: Field "${P}" in "orderBy" needs to be provided in "by"`;
    }[OrderFields]>(args: Prisma.SubsetIntersection<T, EffectGroupByArgs, OrderByArg> & InputErrors): {} extends InputErrors ? GetEffectGroupByPayload<T> : Prisma.PrismaPromise<InputErrors>;
    readonly fields: EffectFieldRefs;
}
export interface Prisma__EffectClient<T, Null = never, ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs, GlobalOmitOptions = {}> extends Prisma.PrismaPromise<T> {
    readonly [Symbol.toStringTag]: "PrismaPromise";
    then<TResult1 = T, TResult2 = never>(onfulfilled?: ((value: T) => TResult1 | PromiseLike<TResult1>) | undefined | null, onrejected?: ((reason: any) => TResult2 | PromiseLike<TResult2>) | undefined | null): runtime.Types.Utils.JsPromise<TResult1 | TResult2>;
    catch<TResult = never>(onrejected?: ((reason: any) => TResult | PromiseLike<TResult>) | undefined | null): runtime.Types.Utils.JsPromise<T | TResult>;
    finally(onfinally?: (() => void) | undefined | null): runtime.Types.Utils.JsPromise<T>;
}
export interface EffectFieldRefs {
    readonly n: Prisma.FieldRef<"Effect", 'BigInt'>;
    readonly consumer: Prisma.FieldRef<"Effect", 'String'>;
    readonly key: Prisma.FieldRef<"Effect", 'String'>;
    readonly id: Prisma.FieldRef<"Effect", 'String'>;
    readonly seq: Prisma.FieldRef<"Effect", 'Int'>;
    readonly attempt: Prisma.FieldRef<"Effect", 'Int'>;
    readonly pid: Prisma.FieldRef<"Effect", 'Int'>;
}
export type EffectFindUniqueArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    where: Prisma.EffectWhereUniqueInput;
};
export type EffectFindUniqueOrThrowArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    where: Prisma.EffectWhereUniqueInput;
};
export type EffectFindFirstArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    where?: Prisma.EffectWhereInput;
    orderBy?: Prisma.EffectOrderByWithRelationInput | Prisma.EffectOrderByWithRelationInput[];
    cursor?: Prisma.EffectWhereUniqueInput;
    take?: number;
    skip?: number;
    distinct?: Prisma.EffectScalarFieldEnum | Prisma.EffectScalarFieldEnum[];
};
export type EffectFindFirstOrThrowArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    where?: Prisma.EffectWhereInput;
    orderBy?: Prisma.EffectOrderByWithRelationInput | Prisma.EffectOrderByWithRelationInput[];
    cursor?: Prisma.EffectWhereUniqueInput;
    take?: number;
    skip?: number;
    distinct?: Prisma.EffectScalarFieldEnum | Prisma.EffectScalarFieldEnum[];
};
export type EffectFindManyArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    where?: Prisma.EffectWhereInput;
    orderBy?: Prisma.EffectOrderByWithRelationInput | Prisma.EffectOrderByWithRelationInput[];
    cursor?: Prisma.EffectWhereUniqueInput;
    take?: number;
    skip?: number;
    distinct?: Prisma.EffectScalarFieldEnum | Prisma.EffectScalarFieldEnum[];
};
export type EffectCreateArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    data: Prisma.XOR<Prisma.EffectCreateInput, Prisma.EffectUncheckedCreateInput>;
};
export type EffectCreateManyArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    data: Prisma.EffectCreateManyInput | Prisma.EffectCreateManyInput[];
    skipDuplicates?: boolean;
};
export type EffectCreateManyAndReturnArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelectCreateManyAndReturn<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    data: Prisma.EffectCreateManyInput | Prisma.EffectCreateManyInput[];
    skipDuplicates?: boolean;
};
export type EffectUpdateArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    data: Prisma.XOR<Prisma.EffectUpdateInput, Prisma.EffectUncheckedUpdateInput>;
    where: Prisma.EffectWhereUniqueInput;
};
export type EffectUpdateManyArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    data: Prisma.XOR<Prisma.EffectUpdateManyMutationInput, Prisma.EffectUncheckedUpdateManyInput>;
    where?: Prisma.EffectWhereInput;
    limit?: number;
};
export type EffectUpdateManyAndReturnArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelectUpdateManyAndReturn<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    data: Prisma.XOR<Prisma.EffectUpdateManyMutationInput, Prisma.EffectUncheckedUpdateManyInput>;
    where?: Prisma.EffectWhereInput;
    limit?: number;
};
export type EffectUpsertArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    where: Prisma.EffectWhereUniqueInput;
    create: Prisma.XOR<Prisma.EffectCreateInput, Prisma.EffectUncheckedCreateInput>;
    update: Prisma.XOR<Prisma.EffectUpdateInput, Prisma.EffectUncheckedUpdateInput>;
};
export type EffectDeleteArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
    where: Prisma.EffectWhereUniqueInput;
};
export type EffectDeleteManyArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    where?: Prisma.EffectWhereInput;
    limit?: number;
};
export type EffectDefaultArgs<ExtArgs extends runtime.Types.Extensions.InternalArgs = runtime.Types.Extensions.DefaultArgs> = {
    select?: Prisma.EffectSelect<ExtArgs> | null;
    omit?: Prisma.EffectOmit<ExtArgs> | null;
};
